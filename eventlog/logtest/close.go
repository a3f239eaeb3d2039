package logtest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

var closeCases = []testCase{
	{
		Name:        "closed log",
		Explanation: "Every method of a closed log returns ErrClosed. Closing the log again is no error.",
		Run:         testCloseLog,
	},
	{
		Name:        "closed store",
		Explanation: "Every method of a closed store returns ErrClosed.",
		Run:         testCloseStore,
	},
	{
		Name:        "ends watchers",
		Explanation: "Closing the log ends its watchers with ErrClosed and ends its streams of deltas.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 2)
			w := t.watch(t.Main(), "a", 1)
			w.next(2)
			t.Must(t.Main().Close())
			t.WantErr(eventlog.ErrClosed, w.end())
			for range t.Main().Deltas(t.Ctx, "a") {
				t.Errorf("a closed log yielded a delta")
			}
		},
	},
	{
		Name:        "concurrent appends",
		Explanation: "An append that runs while the log is closed is stored as a whole or not at all, as its error says.",
		Run:         testCloseBusy,
	},
	{
		Name:        "running operations",
		Explanation: "Every operation that runs while the log is closed succeeds or returns ErrClosed. Later calls return ErrClosed, and no file stays open.",
		Run:         testCloseRunning,
	},
	{
		Name:        "waiting for the store lock",
		Explanation: "A call that waits for the store lock returns ErrClosed when its log is closed.",
		Needs:       []suite.Need{suite.Locker, suite.Handles, suite.Eraser},
		Run:         testCloseWaiting,
	},
	{
		Name:        "no goroutines left",
		Explanation: "Sequences that are stopped early, watchers that are cancelled, and closed logs leave no goroutines running.",
		Run:         testCloseLeaks,
	},
}

func testCloseLog(t *env) {
	l := t.Main()
	head := t.Fill(l, "a", 2)
	t.Must(l.Close())
	_, err := l.Append(t.Ctx, "a", eventlog.At(head), suite.Note(1))
	t.WantErr(eventlog.ErrClosed, err)
	_, err = suite.Collect(l.Read(t.Ctx, "a", eventlog.All()))
	t.WantErr(eventlog.ErrClosed, err)
	_, err = l.Head(t.Ctx, "a")
	t.WantErr(eventlog.ErrClosed, err)
	_, err = suite.Collect(l.Sessions(t.Ctx))
	t.WantErr(eventlog.ErrClosed, err)
	_, err = suite.Collect(l.Watch(t.Ctx, "a", 1))
	t.WantErr(eventlog.ErrClosed, err)
	_, err = verify.Session(t.Ctx, l, "a")
	t.WantErr(eventlog.ErrClosed, err)
	_, err = erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.WantErr(eventlog.ErrClosed, err)
	t.WantErr(eventlog.ErrClosed, erase.Remove(t.Ctx, l, "a"))
	_, err = l.PutBlob(t.Ctx, suite.NewReader("body"))
	t.WantErr(eventlog.ErrClosed, err)
	t.Must(l.Close())
	t.OpenLog = nil
	t.WantEqual("events", 2, len(t.Lines(t.Reopen(), "a")))
}

func testCloseStore(t *env) {
	s := t.Open()
	head := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 2))
	t.Must(s.Close())
	t.WantErr(eventlog.ErrClosed, s.Append(t.Ctx, "a", head, suite.BatchAfter("a", head, 1), false))
	_, err := suite.Collect(s.Read(t.Ctx, "a", eventlog.Span{}))
	t.WantErr(eventlog.ErrClosed, err)
	_, err = suite.Collect(s.Sessions(t.Ctx))
	t.WantErr(eventlog.ErrClosed, err)
	if v, ok := eventlog.As[eventlog.Versioner](s); ok {
		_, err := v.Version(t.Ctx, "a")
		t.WantErr(eventlog.ErrClosed, err)
	}
	if b, ok := eventlog.As[eventlog.Blobs](s); ok {
		_, _, err := b.PutBlob(t.Ctx, suite.NewReader("body"))
		t.WantErr(eventlog.ErrClosed, err)
	}
	if r, ok := eventlog.As[eventlog.Eraser](s); ok {
		t.WantErr(eventlog.ErrClosed, r.RemoveSession(t.Ctx, "a", head))
	}
	if l, ok := eventlog.As[eventlog.Locker](s); ok {
		_, _, err := l.Lock(t.Ctx, true)
		t.WantErr(eventlog.ErrClosed, err)
	}
	t.WantEqual("events", 2, len(t.Lines(t.Main(), "a")))
}

func testCloseBusy(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	appends := make([][]cancelledAppend, 4)
	started := make(chan struct{}, 4)
	_ = suite.Concurrently(5, func(i int) error {
		if i == 4 {
			for range 4 {
				<-started
			}
			return l.Close()
		}
		for n := 0; ; n++ {
			c := cancelledAppend{Events: suite.Notes(3)}
			_, c.Err = l.Append(t.Ctx, "a", eventlog.Any(), c.Events...)
			appends[i] = append(appends[i], c)
			if n == 10 || n < 10 && c.Err != nil {
				started <- struct{}{}
			}
			if c.Err != nil {
				return nil
			}
		}
	})
	t.OpenLog = nil
	l = t.Reopen()
	found := t.idCounts(l)
	for _, of := range appends {
		t.wantClosedOutcome(of[len(of)-1], found)
		for _, c := range of[:len(of)-1] {
			t.wantOutcome(c, found)
		}
	}
	t.WantVerified(l, "a")
}

// wantClosedOutcome checks that the stored events match the error of an append that
// ran during Close.
func (t *env) wantClosedOutcome(c cancelledAppend, counts map[string]int) {
	t.Helper()
	found := c.stored(counts)
	switch {
	case errors.Is(c.Err, eventlog.ErrUnknownOutcome):
		t.WantEqual("the append is stored as a whole or not at all", true, found == 0 || found == 3)
	case errors.Is(c.Err, eventlog.ErrClosed):
		t.WantEqual("events of the rejected append", 0, found)
	default:
		t.Errorf("an append to the closed log returned error %v", c.Err)
	}
}

func testCloseLeaks(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Notes(500)...)
	t.firstEvent(l.Read(t.Ctx, "a", eventlog.All()))
	before := runtime.NumGoroutine()
	for n := range testsize.Fewer(50) {
		t.firstEvent(l.Read(t.Ctx, "a", eventlog.All()))
		t.firstEvent(l.Read(t.Ctx, "a", eventlog.Last(20)))
		t.firstEvent(l.Store().Read(t.Ctx, "a", eventlog.Span{Backward: true}))
		t.firstEvent(l.Read(t.Ctx, "a", eventlog.All().OnPath()))
		t.firstEvent(l.Watch(t.Ctx, "a", int64(n)))
		for range l.Sessions(t.Ctx) {
			break
		}
		ctx, cancel := context.WithCancel(t.Ctx)
		for e := range l.Watch(ctx, "a", 1) {
			if e.Seq == 500 {
				cancel()
			}
		}
		cancel()
	}
	t.waitForGoroutines(before)
	t.Close()
	t.waitForGoroutines(before)
}

// waitForGoroutines waits until no more goroutines run than before.
func (t *env) waitForGoroutines(before int) {
	t.Helper()
	for runtime.NumGoroutine() > before {
		select {
		case <-t.Ctx.Done():
			t.Fatalf("%d goroutines are running, want %d", runtime.NumGoroutine(), before)
		case <-time.After(time.Millisecond):
		}
	}
}
