package logtest

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
)

var watchCases = []testCase{
	{
		Name:        "stored and new events",
		Explanation: "A watcher gets the stored events and then each new event, in order, without gaps or duplicates, while four writers append.",
		Run:         func(t *env) { testWatchContended(t, t.Main(), t.Main()) },
	},
	{
		Name:        "sees other handles",
		Explanation: "A watcher gets the appends of another handle, in order, without gaps or duplicates.",
		Needs:       []suite.Need{suite.Handles},
		Run:         func(t *env) { testWatchContended(t, t.Main(), t.Second()) },
	},
	{
		Name:        "from any seq",
		Explanation: "A watcher starts at its seq. After the head it waits for the next event.",
		Run:         testWatchFrom,
	},
	{
		Name:        "slow watcher",
		Explanation: "A slow watcher that is thousands of events late loses no events.",
		Run:         testWatchSlow,
	},
	{
		Name:        "cancelled",
		Explanation: "A waiting watcher ends with its context's error.",
		Run:         testWatchCancelled,
	},
	{
		Name:        "stopped",
		Explanation: "A caller can stop a watcher at any event, and the log still works.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 5)
			for n := range 5 {
				t.WantEqual("first event", int64(n+1), t.firstEvent(t.Main().Watch(t.Ctx, "a", int64(n+1))).Seq)
				t.Fill(t.Main(), "a", 1)
			}
		},
	},
	{
		Name:        "removed session",
		Explanation: "A watcher ends with ErrNotFound when its session is removed.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         func(t *env) { testWatchRemoved(t, t.Main()) },
	},
	{
		Name:        "session removed by another handle",
		Explanation: "A watcher ends with ErrNotFound when another handle removes its session.",
		Needs:       []suite.Need{suite.Eraser, suite.Handles},
		Run:         func(t *env) { testWatchRemoved(t, t.Second()) },
	},
	{
		Name:        "recreated session",
		Explanation: "A watcher ends with an error when its session is removed and recreated. It never mixes the two histories.",
		Needs:       []suite.Need{suite.Eraser, suite.Handles},
		Run:         testWatchReplaced,
	},
	{
		Name:        "fork",
		Explanation: "A watcher of a fork gets the shared prefix and then the fork's own events.",
		Run: func(t *env) {
			t.Fill(t.Main(), "p", 3)
			t.Append(t.Main(), "f", eventlog.New(), t.ForkAt("p", 2))
			w := t.watch(t.Main(), "f", 1)
			t.Fill(t.Main(), "p", 2)
			t.Fill(t.Main(), "f", 2)
			t.WantEqual("seqs", between(1, 5), suite.SeqsOf(w.next(5)))
			w.stop()
		},
	},
	{
		Name:        "appends of two handles",
		Explanation: "A watcher gets an event of another handle that directly follows an event of its own handle.",
		Needs:       []suite.Need{suite.Handles},
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			w := t.watch(t.Main(), "a", 1)
			w.next(1)
			for range testsize.Fewer(20) {
				t.Fill(t.Main(), "a", 1)
				t.Fill(t.Second(), "a", 1)
				w.next(2)
			}
			w.stop()
		},
	},
	{
		Name:        "spilled data",
		Explanation: "A watcher gets the data of spilled events, like a reader.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 10})
			t.Fill(l, "a", 1)
			w := t.watch(l, "a", 1)
			w.next(1)
			t.Append(l, "a", eventlog.Any(), suite.NewEvent("test:note", `"`+suite.Text("x", 50)+`"`))
			t.WantEqual("data", `"`+suite.Text("x", 50)+`"`, string(w.next(1)[0].Data))
			w.stop()
		},
	},
	{
		Name:        "deltas",
		Explanation: "Deltas reach the session's watchers in this process, in order, and are never stored.",
		Run:         testDeltas,
	},
}

// testWatcher is a watcher in a goroutine of its own.
type testWatcher struct {
	t      *env
	events chan event.Event
	ended  chan error
	cancel context.CancelFunc
}

// watch starts a watcher that yields into an unbuffered channel.
func (t *env) watch(l *eventlog.Log, session string, from int64) *testWatcher {
	ctx, cancel := context.WithCancel(t.Ctx)
	w := &testWatcher{t: t, events: make(chan event.Event), ended: make(chan error, 1), cancel: cancel}
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

// next waits for n events.
func (w *testWatcher) next(n int) []event.Event {
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
func (w *testWatcher) stop() {
	w.t.Helper()
	w.cancel()
	if err := <-w.ended; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Errorf("the cancelled watcher ended with %v", err)
	}
}

// end waits until the watcher ends by itself.
func (w *testWatcher) end() error {
	for {
		select {
		case <-w.events:
		case err := <-w.ended:
			w.cancel()
			return err
		}
	}
}

// firstEvent reads the first event of a sequence and stops the sequence.
func (t *env) firstEvent(seq iter.Seq2[event.Event, error]) event.Event {
	t.Helper()
	for e, err := range seq {
		t.Must(err)
		return e
	}
	t.Fatalf("the sequence is empty")
	return event.Event{}
}

func testWatchContended(t *env, reader, writer *eventlog.Log) {
	const stored, writers = 10, 4
	each := 2 * testsize.Fewer(20)
	t.Fill(writer, "a", stored)
	w := []*testWatcher{t.watch(reader, "a", 1), t.watch(reader, "a", 5)}
	errs := make(chan error, 1)
	go func() {
		errs <- errors.Join(suite.Concurrently(writers, func(int) error {
			for n := range each {
				if _, err := writer.Append(t.Ctx, "a", eventlog.Any(), suite.Notes(1+n%2)...); err != nil {
					return err
				}
			}
			return nil
		})...)
	}()
	total := stored + writers*each*3/2
	got := [][]event.Event{w[0].next(total), w[1].next(total - 4)}
	t.Must(<-errs)
	t.WantEqual("lines", t.Lines(reader, "a"), suite.LinesOf(got[0]))
	t.WantEqual("lines from 5", t.Lines(reader, "a")[4:], suite.LinesOf(got[1]))
	for i := range w {
		w[i].stop()
	}
}

func testWatchFrom(t *env) {
	l := t.Main()
	t.Fill(l, "a", 4)
	w := []*testWatcher{t.watch(l, "a", 0), t.watch(l, "a", 3), t.watch(l, "a", 5), t.watch(l, "a", 7)}
	go func() {
		for range 4 {
			_, _ = l.Append(t.Ctx, "a", eventlog.Any(), suite.Notes(1)...)
		}
	}()
	for i, from := range []int64{1, 3, 5, 7} {
		t.WantEqual("seqs", between(from, 8), suite.SeqsOf(w[i].next(int(9-from))))
		w[i].stop()
	}
}

func testWatchSlow(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	w := t.watch(l, "a", 1)
	w.next(1)
	for n := range 30 {
		t.Append(l, "a", eventlog.Any(), suite.Notes(100)...)
		if n%7 == 0 {
			t.WantEqual("seqs", between(int64(n/7*3+2), int64(n/7*3+4)), suite.SeqsOf(w.next(3)))
		}
	}
	rest := w.next(3000 - 15)
	t.WantEqual("seqs of the rest", between(17, 3001), suite.SeqsOf(rest))
	w.stop()
}

func testWatchCancelled(t *env) {
	l := t.Main()
	t.Fill(l, "a", 2)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Ctx)
		var last error
		n := 0
		for _, err := range l.Watch(ctx, "a", 1) {
			last = err
			if n++; n == 2 {
				cancel()
			}
		}
		cancel()
		t.WantEqual("events and the end", 3, n)
		t.WantErr(context.Canceled, last)
	}
}

func testWatchRemoved(t *env, remover *eventlog.Log) {
	t.Fill(t.Main(), "a", 3)
	t.Fill(t.Main(), "b", 1)
	w, other := t.watch(t.Main(), "a", 1), t.watch(t.Main(), "b", 1)
	w.next(3)
	t.Must(erase.Remove(t.Ctx, remover, "a"))
	t.WantErr(eventlog.ErrNotFound, w.end())
	t.Fill(remover, "b", 2)
	t.WantEqual("seqs of the other session", between(1, 3), suite.SeqsOf(other.next(3)))
	other.stop()
}

func testWatchReplaced(t *env) {
	other := t.Second()
	t.Fill(t.Main(), "a", 3)
	w := t.watch(t.Main(), "a", 1)
	w.next(3)
	t.Must(erase.Remove(t.Ctx, other, "a"))
	t.Append(other, "a", eventlog.New(), suite.Notes(9)...)
	err := w.end()
	if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("the watcher of a removed history ended with %v", err)
	}
}

func testDeltas(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	lines := t.Lines(l, "a")
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	message := event.NewID()
	l.Publish("a", eventlog.Delta{Message: message, Text: "no watcher"})
	deltas := l.Deltas(ctx, "a")
	for _, text := range []string{"one", "two", "end"} {
		l.Publish("b", eventlog.Delta{Message: message, Text: "of another session"})
		l.Publish("a", eventlog.Delta{Message: message, Text: text})
	}
	var texts []string
	for d := range deltas {
		if texts = append(texts, d.Text); d.Text == "end" {
			break
		}
	}
	t.WantEqual("deltas", []string{"one", "two", "end"}, texts)
	t.WantEqual("lines", lines, t.Lines(l, "a"))
	t.WantEqual("deltas after the end", 0, len(slices.Collect(l.Deltas(t.EndedContext(), "a"))))
}
