package storetest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

var closeCases = []testCase{
	{
		name:        "closed log",
		explanation: "Every method of a closed log answers ErrClosed; closing it again is no error.",
		run:         testCloseLog,
	},
	{
		name:        "closed store",
		explanation: "Every method of a closed store answers ErrClosed.",
		run:         testCloseStore,
	},
	{
		name:        "ends watchers",
		explanation: "Closing the log ends its watchers with ErrClosed, and its streams of deltas.",
		run: func(t *env) {
			t.fill(t.log(), "a", 2)
			w := t.watch(t.log(), "a", 1)
			w.take(2)
			t.must(t.log().Close())
			t.wantErr(eventlog.ErrClosed, w.end())
			for range t.log().Deltas(t.ctx, "a") {
				t.Errorf("a closed log gave a delta")
			}
		},
	},
	{
		name:        "while others append",
		explanation: "Appends under way when the log is closed are whole or absent, and say which.",
		run:         testCloseBusy,
	},
	{
		name:        "leaves nothing running",
		explanation: "Sequences that are stopped early, watchers that are cancelled, and a closed log leave no goroutine behind.",
		run:         testCloseLeaks,
	},
}

func testCloseLog(t *env) {
	l := t.log()
	head := t.fill(l, "a", 2)
	t.must(l.Close())
	_, err := l.Append(t.ctx, "a", eventlog.At(head), note(1))
	t.wantErr(eventlog.ErrClosed, err)
	_, err = collect(l.Read(t.ctx, "a", eventlog.All()))
	t.wantErr(eventlog.ErrClosed, err)
	_, err = l.Head(t.ctx, "a")
	t.wantErr(eventlog.ErrClosed, err)
	_, err = collect(l.Sessions(t.ctx))
	t.wantErr(eventlog.ErrClosed, err)
	_, err = collect(l.Watch(t.ctx, "a", 1))
	t.wantErr(eventlog.ErrClosed, err)
	_, err = verify.Session(t.ctx, l, "a")
	t.wantErr(eventlog.ErrClosed, err)
	_, err = erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.wantErr(eventlog.ErrClosed, err)
	t.wantErr(eventlog.ErrClosed, erase.Remove(t.ctx, l, "a"))
	_, err = l.PutBlob(t.ctx, newReader("body"))
	t.wantErr(eventlog.ErrClosed, err)
	t.must(l.Close())
	t.main = nil
	t.same("events", 2, len(t.lines(t.reopen(), "a")))
}

func testCloseStore(t *env) {
	s := t.open()
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 2))
	t.must(s.Close())
	t.wantErr(eventlog.ErrClosed, s.Append(t.ctx, "a", head, batchAfter("a", head, 1), false))
	_, err := collect(s.Read(t.ctx, "a", eventlog.Span{}))
	t.wantErr(eventlog.ErrClosed, err)
	_, err = collect(s.Sessions(t.ctx))
	t.wantErr(eventlog.ErrClosed, err)
	if v, ok := eventlog.As[eventlog.Versioner](s); ok {
		_, err := v.Version(t.ctx, "a")
		t.wantErr(eventlog.ErrClosed, err)
	}
	if b, ok := eventlog.As[eventlog.Blobs](s); ok {
		_, _, err := b.PutBlob(t.ctx, newReader("body"))
		t.wantErr(eventlog.ErrClosed, err)
	}
	if r, ok := eventlog.As[eventlog.Eraser](s); ok {
		t.wantErr(eventlog.ErrClosed, r.RemoveSession(t.ctx, "a", head))
	}
	if l, ok := eventlog.As[eventlog.Locker](s); ok {
		_, _, err := l.Lock(t.ctx, true)
		t.wantErr(eventlog.ErrClosed, err)
	}
	t.same("events", 2, len(t.lines(t.log(), "a")))
}

func testCloseBusy(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	appends := make([][]cancelled, 4)
	started := make(chan struct{}, 4)
	_ = together(5, func(i int) error {
		if i == 4 {
			for range 4 {
				<-started
			}
			return l.Close()
		}
		for n := 0; ; n++ {
			c := cancelled{events: notes(3)}
			_, c.err = l.Append(t.ctx, "a", eventlog.Any(), c.events...)
			appends[i] = append(appends[i], c)
			if n == 10 {
				started <- struct{}{}
			}
			if c.err != nil {
				return nil
			}
		}
	})
	t.main = nil
	l = t.reopen()
	found := t.counts(l)
	for _, of := range appends {
		t.closedOutcome(of[len(of)-1], found)
		for _, c := range of[:len(of)-1] {
			t.outcome(c, found)
		}
	}
	t.sound(l, "a")
}

// closedOutcome makes sure that the append that met the closed log is whole or
// absent, as its error says.
func (t *env) closedOutcome(c cancelled, counts map[string]int) {
	t.Helper()
	found := c.places(counts)
	switch {
	case errors.Is(c.err, eventlog.ErrUnknownOutcome):
		t.same("the append is whole or absent", true, found == 0 || found == 3)
	case errors.Is(c.err, eventlog.ErrClosed):
		t.same("events of the refused append", 0, found)
	default:
		t.Errorf("an append that met the closed log gave error %v", c.err)
	}
}

func testCloseLeaks(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), notes(500)...)
	t.first(l.Read(t.ctx, "a", eventlog.All()))
	before := runtime.NumGoroutine()
	for n := range 50 {
		t.first(l.Read(t.ctx, "a", eventlog.All()))
		t.first(l.Read(t.ctx, "a", eventlog.Last(20)))
		t.first(l.Store().Read(t.ctx, "a", eventlog.Span{Backward: true}))
		t.first(l.Read(t.ctx, "a", eventlog.All().OnPath()))
		t.first(l.Watch(t.ctx, "a", int64(n)))
		for range l.Sessions(t.ctx) {
			break
		}
		ctx, cancel := context.WithCancel(t.ctx)
		for e := range l.Watch(ctx, "a", 1) {
			if e.Seq == 500 {
				cancel()
			}
		}
		cancel()
	}
	t.settles(before)
	t.close()
	t.settles(before)
}

// settles waits until no more goroutines run than before.
func (t *env) settles(before int) {
	t.Helper()
	for runtime.NumGoroutine() > before {
		select {
		case <-t.ctx.Done():
			t.Fatalf("%d goroutines are left where %d were", runtime.NumGoroutine(), before)
		case <-time.After(time.Millisecond):
		}
	}
}
