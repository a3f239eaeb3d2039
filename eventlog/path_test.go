package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// counting counts the events that are read of a store, and the readings. If indexed is set, the
// store has an index of snapshots and head_moved events, except for the event lacks.
type counting struct {
	eventlog.Store
	events, readings int
	indexed          bool
	lacks            int64
}

func (c *counting) Unwrap() eventlog.Store { return c.Store }

func (c *counting) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c.readings++
		for e, err := range c.Store.Read(ctx, session, span) {
			if name := e.Type.Name(); c.indexed && span.Snapshots && err == nil &&
				(name != event.HeadMoved && name != event.ProjectionSnapshotted || e.Seq == c.lacks) {
				continue
			}
			c.events++
			if !yield(e, err) {
				return
			}
		}
	}
}

func openCounting(t *testing.T) (*eventlog.Log, *counting) {
	store := &counting{Store: memory.New()}
	log := eventlog.Open(store)
	t.Cleanup(func() { _ = log.Close() })
	return log, store
}

// talk appends n short messages.
func talk(t *testing.T, log *eventlog.Log, session string, n int) {
	t.Helper()
	talkOf(t, log, session, n, "hello")
}

// talkOf appends n messages with a text, at most 256 in one append.
func talkOf(t *testing.T, log *eventlog.Log, session string, n int, text string) {
	t.Helper()
	for n > 0 {
		events := make([]event.Event, min(n, 256))
		for i := range events {
			events[i] = event.UserMessage(text)
		}
		appendTo(t, log, session, events...)
		n -= len(events)
	}
}

// move moves the head of a session.
func move(t *testing.T, log *eventlog.Log, session string, to int64) {
	t.Helper()
	e := event.New(event.HeadMove{To: to})
	appendTo(t, log, session, e)
}

func appendTo(t *testing.T, log *eventlog.Log, session string, events ...event.Event) {
	t.Helper()
	if _, err := log.Append(context.Background(), session, eventlog.Any(), events...); err != nil {
		t.Fatal(err)
	}
}

func pathOf(t *testing.T, log *eventlog.Log, session string) (seqs []int64) {
	t.Helper()
	for e, err := range log.Read(context.Background(), session, eventlog.All().OnPath()) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// walkBack finds the active path of a session from all its events.
func walkBack(t *testing.T, log *eventlog.Log, session string) (seqs []int64) {
	t.Helper()
	parents, head := map[int64]int64{}, int64(0)
	for e, err := range log.Read(context.Background(), session, eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		head = e.Seq
		parents[head] = head - 1
		if m, ok, err := event.Decode[event.HeadMove](&e); err != nil {
			t.Fatal(err)
		} else if ok {
			parents[head] = m.To
		}
	}
	for ; head > 0; head = parents[head] {
		seqs = append(seqs, head)
	}
	slices.Reverse(seqs)
	return seqs
}

// Read finds the same path for any length, with long and with short messages, and for any
// gap beside the path. It finds the path again when it is known, and when it has grown.
func TestPathOfAnyLength(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(log *eventlog.Log, talk func(session string, n int))
	}{
		{"one event", func(_ *eventlog.Log, talk func(string, int)) { talk("s", 1) }},
		{"many events", func(_ *eventlog.Log, talk func(string, int)) { talk("s", 1500) }},
		{"near and far moves", func(log *eventlog.Log, talk func(string, int)) {
			talk("s", 1000)
			for _, back := range []int64{0, 1, 255, 256, 257, 900, 1, 300} {
				talk("s", 400)
				head, err := log.Head(context.Background(), "s")
				if err != nil {
					t.Fatal(err)
				}
				move(t, log, "s", head.Seq-back)
			}
		}},
		{"a short path in a long session", func(log *eventlog.Log, talk func(string, int)) {
			talk("s", 1500)
			move(t, log, "s", 5)
			talk("s", 300)
			move(t, log, "s", 1502)
		}},
		{"the empty path", func(log *eventlog.Log, talk func(string, int)) { talk("s", 1500); move(t, log, "s", 0) }},
		{"back where it was", func(log *eventlog.Log, talk func(string, int)) {
			talk("s", 1500)
			move(t, log, "s", 10)
			move(t, log, "s", 1500)
		}},
		{"a fork", func(log *eventlog.Log, talk func(string, int)) {
			talk("p", 1500)
			move(t, log, "p", 1000)
			talk("p", 1)
			forkAt(t, log, "s", "p", 1502)
			talk("s", 600)
			move(t, log, "s", 1600)
			move(t, log, "s", 1400)
		}},
	} {
		for i, text := range []string{"hello", strings.Repeat("hello ", 1<<10), "hello"} {
			t.Run(fmt.Sprintf("%s, texts of %d bytes", c.name, len(text)), func(t *testing.T) {
				log, store := openCounting(t)
				store.indexed = i == 2
				talk := func(session string, n int) { talkOf(t, log, session, n, text) }
				c.build(log, talk)
				wantPath(t, log, "s")
				wantPath(t, log, "s")
				talk("s", 20)
				wantPath(t, log, "s")
				move(t, log, "s", 1)
				wantPath(t, log, "s")
			})
		}
	}
}

func wantPath(t *testing.T, log *eventlog.Log, session string) {
	t.Helper()
	want := walkBack(t, log, session)
	if got := pathOf(t, log, session); !slices.Equal(got, want) {
		t.Errorf("Read: got %d events, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
	path, err := log.Path(context.Background(), session, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, s := range path {
		for seq := s.From; seq <= s.To; seq++ {
			got = append(got, seq)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("Path: got %d events, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

// Read reads a path of some megabytes once. It reads a longer one twice, except for its
// newest events, and later only what is new. Many moves cost no reading each.
func TestPathReadsLittle(t *testing.T) {
	long := strings.Repeat("hello ", 1<<10)
	for _, c := range []struct {
		turns         int // of 10 events and a near move each
		text          string
		events, again int
	}{
		{turns: 20, text: "hello", events: 21*10 + 1, again: 21*10 + 1},
		{turns: 400, text: "hello", events: 401*10 + 2, again: 401*10 + 3},
		{turns: 400, text: long, events: 2*401*10 - 1100, again: 401*10 + 3},
	} {
		log, store := openCounting(t)
		for range c.turns {
			talkOf(t, log, "s", 9, c.text)
			head, err := log.Head(context.Background(), "s")
			if err != nil {
				t.Fatal(err)
			}
			move(t, log, "s", head.Seq-1)
		}
		talkOf(t, log, "s", 10, c.text)
		for _, events := range []int{c.events, c.again} {
			store.events, store.readings = 0, 0
			pathOf(t, log, "s")
			if store.events > events || store.readings > 4 {
				t.Errorf("%d turns: %d events were read in %d readings, want %d in 4", c.turns, store.events, store.readings, events)
			}
		}
	}
}

// With an index of head_moved events, Read reads each event of a long path once, and few others.
// It notices an event that the index lacks.
func TestPathByAnIndex(t *testing.T) {
	log, store := openCounting(t)
	store.indexed = true
	talkOf(t, log, "s", 2000, strings.Repeat("hello ", 1<<10))
	move(t, log, "s", 1000)
	talk(t, log, "s", 500)
	store.events, store.readings = 0, 0
	if got := pathOf(t, log, "s"); len(got) != 1501 || store.events > 1501+10 || store.readings > 5 {
		t.Errorf("a path of %d events: %d events were read in %d readings", len(got), store.events, store.readings)
	}
	store.lacks = 2001
	var failed error
	for _, err := range log.Read(context.Background(), "s", eventlog.All().OnPath()) {
		failed = err
	}
	var damage *eventlog.CorruptError
	if !errors.As(failed, &damage) || damage.Seq != 2001 {
		t.Errorf("the index lacks an event: %v", failed)
	}
}

// A path that was found in a session is not used for another session of the same name.
func TestPathOfARemovedSession(t *testing.T) {
	log, store := openCounting(t)
	talk(t, log, "s", 3000)
	wantPath(t, log, "s")
	eraser, ok := eventlog.As[eventlog.Eraser](store)
	if !ok {
		t.Fatal("the store cannot remove sessions")
	}
	head, err := log.Head(context.Background(), "s")
	if err == nil {
		err = eraser.RemoveSession(context.Background(), "s", head)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := eventlog.Open(store.Store)
	talk(t, other, "s", 2000)
	move(t, other, "s", 10)
	talk(t, other, "s", 1200)
	wantPath(t, log, "s")
}

// A session is removed and begun again while a path of it is read. The read ends with an
// error: it does not skip events, and no read of the old session is whole.
func TestSessionRemovedUnderPath(t *testing.T) {
	long := strings.Repeat("hello ", 1<<10)
	for name, events := range map[string]int{"shorter": 300, "longer": 5000, "shorter, with an index": 300, "longer, with an index": 5000} {
		t.Run(name, func(t *testing.T) {
			log, store := openCounting(t)
			store.indexed = strings.HasSuffix(name, "index")
			talkOf(t, log, "s", 1000, long)
			move(t, log, "s", 300)
			talkOf(t, log, "s", 3000, long)
			eraser, _ := eventlog.As[eventlog.Eraser](store)
			next := int64(1)
			var failed error
			for e, err := range log.Read(context.Background(), "s", eventlog.All().OnPath()) {
				if failed = err; err != nil {
					break
				}
				if e.Seq != next && e.Seq != 1001 {
					t.Fatalf("event %d follows event %d", e.Seq, next-1)
				}
				if next = e.Seq + 1; e.Seq > 1 {
					continue
				}
				head, err := log.Head(context.Background(), "s")
				if err == nil {
					err = eraser.RemoveSession(context.Background(), "s", head)
				}
				if err != nil {
					t.Fatal(err)
				}
				talk(t, log, "s", events)
			}
			if !errors.Is(failed, eventlog.ErrNotFound) {
				t.Errorf("got error %v, want ErrNotFound", failed)
			}
		})
	}
}

// An event beside the path may have a missing body.
func TestPathBesideAMissingBody(t *testing.T) {
	for _, after := range []int{1, 2000} {
		log, store := openCounting(t)
		talk(t, log, "s", 1)
		long := event.UserMessage(strings.Repeat("long ", 100<<10))
		appendTo(t, log, "s", long)
		e, err := log.Event(context.Background(), "s", 2)
		if err != nil {
			t.Fatal(err)
		}
		body, _, spilled := e.Spilled()
		blobs, ok := eventlog.As[eventlog.Blobs](store)
		if !spilled || !ok {
			t.Fatal("the event has no body elsewhere")
		}
		if err := blobs.RemoveBlobs(context.Background(), []event.Digest{body}); err != nil {
			t.Fatal(err)
		}
		move(t, log, "s", 1)
		talk(t, log, "s", after)
		if got := pathOf(t, log, "s"); len(got) != after+2 {
			t.Errorf("got %d events, want %d", len(got), after+2)
		}
	}
}

// Reading costs no allocation for each event.
func TestReadAllocatesLittle(t *testing.T) {
	log, _ := openCounting(t)
	const events = 5000
	talk(t, log, "s", events)
	for name, read := range map[string]func() iter.Seq2[event.Event, error]{
		"read": func() iter.Seq2[event.Event, error] { return log.Read(context.Background(), "s", eventlog.All()) },
		"path": func() iter.Seq2[event.Event, error] {
			return log.Read(context.Background(), "s", eventlog.All().OnPath())
		},
	} {
		n := testing.AllocsPerRun(5, func() {
			for _, err := range read() {
				if err != nil {
					t.Fatal(err)
				}
			}
		})
		if n > events/2 {
			t.Errorf("%s: %v allocations for %d events", name, n, events)
		}
	}
}
