package eventlog_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// counting counts the events that are read of a store, and the readings.
type counting struct {
	eventlog.Store
	events, readings int
}

func (c *counting) Unwrap() eventlog.Store { return c.Store }

func (c *counting) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c.readings++
		for e, err := range c.Store.Read(ctx, session, span) {
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

// talk appends n messages in one append.
func talk(t *testing.T, log *eventlog.Log, session string, n int) {
	t.Helper()
	events := make([]event.Event, n)
	for i := range events {
		e := event.UserMessage("hello")
		events[i] = e
	}
	appendTo(t, log, session, events...)
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

// Read finds the same path for any length, and for any gap beside the path.
func TestPathOfAnyLength(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(log *eventlog.Log)
	}{
		{"at the most that is kept", func(log *eventlog.Log) { talk(t, log, "s", 1023) }},
		{"one more", func(log *eventlog.Log) { talk(t, log, "s", 1024) }},
		{"two more", func(log *eventlog.Log) { talk(t, log, "s", 1025) }},
		{"near and far moves", func(log *eventlog.Log) {
			talk(t, log, "s", 2000)
			for _, back := range []int64{0, 1, 255, 256, 257, 900, 1, 300} {
				talk(t, log, "s", 400)
				head, err := log.Head(context.Background(), "s")
				if err != nil {
					t.Fatal(err)
				}
				move(t, log, "s", head.Seq-back)
			}
		}},
		{"a short path in a long session", func(log *eventlog.Log) {
			talk(t, log, "s", 3000)
			move(t, log, "s", 5)
			talk(t, log, "s", 300)
			move(t, log, "s", 3002)
		}},
		{"the empty path", func(log *eventlog.Log) { talk(t, log, "s", 1500); move(t, log, "s", 0) }},
		{"back where it was", func(log *eventlog.Log) {
			talk(t, log, "s", 1500)
			move(t, log, "s", 10)
			move(t, log, "s", 1500)
		}},
		{"a fork", func(log *eventlog.Log) {
			talk(t, log, "p", 1500)
			move(t, log, "p", 1000)
			talk(t, log, "p", 1)
			forkAt(t, log, "s", "p", 1502)
			talk(t, log, "s", 600)
			move(t, log, "s", 1600)
			move(t, log, "s", 1400)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, _ := openCounting(t)
			c.build(log)
			if got, want := pathOf(t, log, "s"), walkBack(t, log, "s"); !slices.Equal(got, want) {
				t.Errorf("got %d events, want %d:\n%v\n%v", len(got), len(want), got, want)
			}
		})
	}
}

// A short path is read once, a long one twice, and many moves in it cost no
// reading each.
func TestPathReadsLittle(t *testing.T) {
	for _, c := range []struct {
		turns, events, readings int // of 10 events and a near move each
	}{
		{20, 21*10 + 1, 2},
		{400, 2*(401*10) + 1, 3},
	} {
		log, store := openCounting(t)
		for range c.turns {
			talk(t, log, "s", 9)
			head, err := log.Head(context.Background(), "s")
			if err != nil {
				t.Fatal(err)
			}
			move(t, log, "s", head.Seq-1)
		}
		talk(t, log, "s", 10)
		store.events, store.readings = 0, 0
		pathOf(t, log, "s")
		if store.events > c.events || store.readings > c.readings {
			t.Errorf("%d turns: %d events were read in %d readings, want %d in %d", c.turns, store.events, store.readings, c.events, c.readings)
		}
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
