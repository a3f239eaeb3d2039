package storetest

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

var watchCases = []testCase{
	{
		name:        "catches up and goes on",
		explanation: "A watcher gets what is stored and then each new event, in order, without a gap or a duplicate, while four writers append.",
		run:         func(t *env) { testWatchContended(t, t.log(), t.log()) },
	},
	{
		name:        "sees other handles",
		explanation: "A watcher gets what another handle appends, in order, without a gap or a duplicate.",
		needs:       []Need{Handles},
		run:         func(t *env) { testWatchContended(t, t.log(), t.second()) },
	},
	{
		name:        "from any seq",
		explanation: "A watcher starts at the seq it asks for; one past the head waits for the next event.",
		run:         testWatchFrom,
	},
	{
		name:        "slow watcher",
		explanation: "A watcher that falls thousands of events behind loses none of them.",
		run:         testWatchSlow,
	},
	{
		name:        "ends when cancelled",
		explanation: "A watcher that waits ends with its context's error.",
		run:         testWatchCancelled,
	},
	{
		name:        "ends when stopped",
		explanation: "A watcher may be stopped at any event, and the log goes on.",
		run: func(t *env) {
			t.fill(t.log(), "a", 5)
			for n := range 5 {
				t.same("first event", int64(n+1), t.first(t.log().Watch(t.ctx, "a", int64(n+1))).Seq)
				t.fill(t.log(), "a", 1)
			}
		},
	},
	{
		name:        "ends with its session",
		explanation: "A watcher ends with ErrNotFound when its session is removed.",
		needs:       []Need{Remover},
		run:         func(t *env) { testWatchRemoved(t, t.log()) },
	},
	{
		name:        "ends with its session across handles",
		explanation: "A watcher ends with ErrNotFound when another handle removes its session.",
		needs:       []Need{Remover, Handles},
		run:         func(t *env) { testWatchRemoved(t, t.second()) },
	},
	{
		name:        "notices another history",
		explanation: "A watcher whose session is removed and created anew ends with an error; it never mixes two histories.",
		needs:       []Need{Remover, Handles},
		run:         testWatchReplaced,
	},
	{
		name:        "of a fork",
		explanation: "A watcher of a fork gets the shared prefix and then the fork's own events.",
		run: func(t *env) {
			t.fill(t.log(), "p", 3)
			t.append(t.log(), "f", eventlog.New(), t.forkAt("p", 2))
			w := t.watch(t.log(), "f", 1)
			t.fill(t.log(), "p", 2)
			t.fill(t.log(), "f", 2)
			t.same("seqs", between(1, 5), seqsIn(w.take(5)))
			w.stop()
		},
	},
	{
		name:        "spilled data",
		explanation: "A watcher gets the data of spilled events like a reader does.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			l := t.over(t.store(), eventlog.Options{SpillOver: 10})
			t.fill(l, "a", 1)
			w := t.watch(l, "a", 1)
			w.take(1)
			t.append(l, "a", eventlog.Any(), newEvent("test:note", `"`+text("x", 50)+`"`))
			t.same("data", `"`+text("x", 50)+`"`, string(w.take(1)[0].Data))
			w.stop()
		},
	},
	{
		name:        "deltas",
		explanation: "Deltas reach the watchers of their session in this process, in order, and are never stored.",
		run:         testDeltas,
	},
}

// watching is a watcher that runs beside the test.
type watching struct {
	t      *env
	events chan event.Event
	ended  chan error
	cancel context.CancelFunc
}

// watch starts a watcher, which yields into a channel without a buffer.
func (t *env) watch(l *eventlog.Log, session string, from int64) *watching {
	ctx, cancel := context.WithCancel(t.ctx)
	w := &watching{t: t, events: make(chan event.Event), ended: make(chan error, 1), cancel: cancel}
	go func() {
		var last error
		for e, err := range l.Watch(ctx, session, from) {
			if last = err; err != nil {
				break
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
			}
		}
		w.ended <- last
	}()
	return w
}

// take waits for n events.
func (w *watching) take(n int) []event.Event {
	w.t.Helper()
	events := make([]event.Event, 0, n)
	for len(events) < n {
		select {
		case e := <-w.events:
			events = append(events, e)
		case err := <-w.ended:
			w.t.Fatalf("the watcher ended after %d of %d events: %v", len(events), n, err)
		}
	}
	return events
}

// stop cancels the watcher and waits for its end.
func (w *watching) stop() {
	w.t.Helper()
	w.cancel()
	if err := <-w.ended; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Errorf("the cancelled watcher ended with %v", err)
	}
}

// end waits for the watcher to end by itself.
func (w *watching) end() error {
	for {
		select {
		case <-w.events:
		case err := <-w.ended:
			w.cancel()
			return err
		}
	}
}

// first takes one event of a sequence and stops it.
func (t *env) first(seq iter.Seq2[event.Event, error]) event.Event {
	t.Helper()
	for e, err := range seq {
		t.must(err)
		return e
	}
	t.Fatalf("the sequence is empty")
	return event.Event{}
}

func testWatchContended(t *env, reader, writer *eventlog.Log) {
	const stored, writers, each = 10, 4, 40
	t.fill(writer, "a", stored)
	w := []*watching{t.watch(reader, "a", 1), t.watch(reader, "a", 5)}
	errs := make(chan error, 1)
	go func() {
		errs <- errors.Join(together(writers, func(int) error {
			for n := range each {
				if _, err := writer.Append(t.ctx, "a", eventlog.Any(), notes(1+n%2)...); err != nil {
					return err
				}
			}
			return nil
		})...)
	}()
	total := stored + writers*each*3/2
	got := [][]event.Event{w[0].take(total), w[1].take(total - 4)}
	t.must(<-errs)
	t.same("lines", t.lines(reader, "a"), linesOf(got[0]))
	t.same("lines from 5", t.lines(reader, "a")[4:], linesOf(got[1]))
	for i := range w {
		w[i].stop()
	}
}

func testWatchFrom(t *env) {
	l := t.log()
	t.fill(l, "a", 4)
	w := []*watching{t.watch(l, "a", 0), t.watch(l, "a", 3), t.watch(l, "a", 5), t.watch(l, "a", 7)}
	go func() {
		for range 4 {
			_, _ = l.Append(t.ctx, "a", eventlog.Any(), notes(1)...)
		}
	}()
	for i, from := range []int64{1, 3, 5, 7} {
		t.same("seqs", between(from, 8), seqsIn(w[i].take(int(9-from))))
		w[i].stop()
	}
}

func testWatchSlow(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	w := t.watch(l, "a", 1)
	w.take(1)
	for n := range 30 {
		t.append(l, "a", eventlog.Any(), notes(100)...)
		if n%7 == 0 {
			t.same("seqs", between(int64(n/7*3+2), int64(n/7*3+4)), seqsIn(w.take(3)))
		}
	}
	rest := w.take(3000 - 15)
	t.same("seqs of the rest", between(17, 3001), seqsIn(rest))
	w.stop()
}

func testWatchCancelled(t *env) {
	l := t.log()
	t.fill(l, "a", 2)
	for range 10 {
		ctx, cancel := context.WithCancel(t.ctx)
		var last error
		n := 0
		for _, err := range l.Watch(ctx, "a", 1) {
			last = err
			if n++; n == 2 {
				cancel()
			}
		}
		cancel()
		t.same("events and the end", 3, n)
		t.wantErr(context.Canceled, last)
	}
}

func testWatchRemoved(t *env, remover *eventlog.Log) {
	t.fill(t.log(), "a", 3)
	t.fill(t.log(), "b", 1)
	w, other := t.watch(t.log(), "a", 1), t.watch(t.log(), "b", 1)
	w.take(3)
	t.must(erase.Remove(t.ctx, remover, "a"))
	t.wantErr(eventlog.ErrNotFound, w.end())
	t.fill(remover, "b", 2)
	t.same("seqs of the other session", between(1, 3), seqsIn(other.take(3)))
	other.stop()
}

func testWatchReplaced(t *env) {
	other := t.second()
	t.fill(t.log(), "a", 3)
	w := t.watch(t.log(), "a", 1)
	w.take(3)
	t.must(erase.Remove(t.ctx, other, "a"))
	t.append(other, "a", eventlog.New(), notes(9)...)
	err := w.end()
	if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("the watcher of a history that is gone ended with %v", err)
	}
}

func testDeltas(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	lines := t.lines(l, "a")
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	message := event.NewID()
	l.Publish("a", eventlog.Delta{Message: message, Text: "nobody listens"})
	started, texts := make(chan struct{}), make(chan []string, 1)
	go func() {
		var got []string
		for d := range l.Deltas(ctx, "a") {
			if d.Text == "start" {
				if len(got) == 0 {
					close(started)
				}
				got = append(got[:0], "started")
				continue
			}
			if got = append(got, d.Text); d.Text == "end" {
				break
			}
		}
		texts <- got
	}()
	t.publishUntil(l, started, message)
	for _, text := range []string{"one", "two", "end"} {
		l.Publish("b", eventlog.Delta{Message: message, Text: "of another session"})
		l.Publish("a", eventlog.Delta{Message: message, Text: text})
	}
	t.same("deltas", []string{"started", "one", "two", "end"}, <-texts)
	t.same("lines", lines, t.lines(l, "a"))
	t.same("deltas after the end", 0, len(slices.Collect(l.Deltas(t.ended(), "a"))))
}

// publishUntil publishes until a watcher has seen one delta.
func (t *env) publishUntil(l *eventlog.Log, seen <-chan struct{}, message ulid.ULID) {
	t.Helper()
	for {
		select {
		case <-seen:
			return
		case <-t.ctx.Done():
			t.Fatalf("no delta arrived")
		default:
			l.Publish("a", eventlog.Delta{Message: message, Text: "start"})
			runtime.Gosched()
		}
	}
}
