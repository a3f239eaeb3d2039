package logtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

var cancelCases = []testCase{
	{
		Name:        "before an append",
		Explanation: "An append with an ended context returns the context's error and stores nothing.",
		Run:         testCancelBefore,
	},
	{
		Name:        "during appends",
		Explanation: "An append that is cancelled at any moment is stored as a whole or not at all. With the context's error it is not stored. With ErrUnknownOutcome it may be stored, and a retry stores it once.",
		Run:         testCancelDuring,
	},
	{
		Name:        "one of many appends",
		Explanation: "Cancelling one append does not affect other appends that wait with it.",
		Run:         testCancelOne,
	},
	{
		Name:        "during a read",
		Explanation: "A read stops with the context's error when its context ends during the read.",
		Run:         testCancelRead,
	},
	{
		Name:        "other methods",
		Explanation: "Every method returns the error of an ended context.",
		Run:         testCancelOthers,
	},
	{
		Name:        "waiting for the store lock",
		Explanation: "An append that waits for the store lock stops when its context ends and stores nothing.",
		Needs:       []suite.Need{suite.Locker, suite.Blobs},
		Run:         func(t *env) { testCancelLocked(t, t.Main()) },
	},
	{
		Name:        "waiting for another handle's lock",
		Explanation: "An append that waits for the store lock of another handle stops when its context ends and stores nothing.",
		Needs:       []suite.Need{suite.Locker, suite.Blobs, suite.Handles},
		Run:         func(t *env) { testCancelLocked(t, t.Second()) },
	},
}

func testCancelBefore(t *env) {
	l := t.Main()
	head := t.Fill(l, "a", 2)
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.At(head), eventlog.Any().Durable()} {
		_, err := l.Append(t.EndedContext(), "a", x, suite.Note(1))
		t.WantErr(context.Canceled, err)
	}
	_, err := l.Append(t.EndedContext(), "b", eventlog.New(), suite.Note(1))
	t.WantErr(context.Canceled, err)
	t.WantEqual("events", 2, len(t.Lines(l, "a")))
	t.WantMissing(l, "b")
}

// cancelledAppend is an append that may have been cancelled, and its result.
type cancelledAppend struct {
	Events []event.Event
	Err    error
}

func testCancelDuring(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	const writers = 4
	appends := make([][]cancelledAppend, writers)
	_ = suite.Concurrently(writers, func(i int) error {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		for range testsize.Fewer(60) {
			ctx, cancel := context.WithCancel(t.Ctx)
			timer := time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
			c := cancelledAppend{Events: suite.Notes(3)}
			_, c.Err = l.Append(ctx, "a", eventlog.Any(), c.Events...)
			timer.Stop()
			cancel()
			appends[i] = append(appends[i], c)
		}
		return nil
	})
	t.wantOutcomes(l, slices.Concat(appends...))
	t.WantVerified(l, "a")
	t.WantVerified(t.Reopen(), "a")
}

// wantOutcomes checks that the stored events match the results of cancelled appends,
// and that a retry stores each append once.
func (t *env) wantOutcomes(l *eventlog.Log, appends []cancelledAppend) {
	t.Helper()
	found := t.idCounts(l)
	for _, c := range appends {
		t.wantOutcome(c, found)
		if c.Err != nil {
			t.Append(l, "a", retryOf(eventlog.Any(), c.Err), c.Events...)
		}
	}
	found = t.idCounts(l)
	for _, c := range appends {
		t.WantEqual("events after the retry", 3, c.stored(found))
	}
}

// wantOutcome checks that the stored events match the result of a cancelled append.
func (t *env) wantOutcome(c cancelledAppend, counts map[string]int) {
	t.Helper()
	found := c.stored(counts)
	switch unknown := errors.Is(c.Err, eventlog.ErrUnknownOutcome); {
	case c.Err == nil && found != 3:
		t.Fatalf("an acknowledged append stored %d of its 3 events", found)
	case c.Err != nil && !unknown && !errors.Is(c.Err, context.Canceled):
		t.Fatalf("a cancelled append returned error %v", c.Err)
	case c.Err != nil && !unknown && found != 0:
		t.Fatalf("an append that returned %v stored %d of its 3 events", c.Err, found)
	case unknown && found != 0 && found != 3:
		t.Fatalf("an append with an unknown outcome stored %d of its 3 events", found)
	}
}

// idCounts returns the number of events in the session for each id.
func (t *env) idCounts(l *eventlog.Log) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for e, err := range l.Store().Read(t.Ctx, "a", eventlog.Span{}) {
		t.Must(err)
		counts[e.ID.String()]++
	}
	return counts
}

// stored returns the number of the append's events in the session.
func (c *cancelledAppend) stored(counts map[string]int) (n int) {
	for _, id := range suite.IDsOf(c.Events) {
		n += counts[id]
	}
	return n
}

// goroutines is the number of concurrent goroutines.
const goroutines = 16

func testCancelOne(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	var stored atomic.Int64
	errs := suite.Concurrently(goroutines, func(i int) error {
		for n := range 20 {
			if i%4 == 0 {
				_, _ = l.Append(ctx, "a", eventlog.Any(), suite.Note(n))
			} else if _, err := l.Append(t.Ctx, "a", eventlog.Any(), suite.NewEvent("test:other", "1")); err != nil {
				return err
			}
			if stored.Add(1) == 100 {
				cancel()
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
	others := 0
	for _, e := range t.Read(l, "a", eventlog.All()) {
		if e.Type == "test:other" {
			others++
		}
	}
	t.WantEqual("events of the appends that were not cancelled", goroutines*3/4*20, others)
	t.WantVerified(l, "a")
}

func testCancelRead(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Notes(2000)...)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward()} {
		ctx, cancel := context.WithCancel(t.Ctx)
		n := 0
		var last error
		for _, err := range l.Read(ctx, "a", r) {
			if last = err; err == nil {
				n++
			}
			if n == 10 {
				cancel()
			}
		}
		cancel()
		t.WantErr(context.Canceled, last)
	}
}

func testCancelOthers(t *env) {
	l := t.Main()
	t.Fill(l, "a", 2)
	ctx := t.EndedContext()
	_, err := l.Head(ctx, "a")
	t.WantErr(context.Canceled, err)
	_, err = l.Event(ctx, "a", 1)
	t.WantErr(context.Canceled, err)
	_, err = suite.Collect(l.Sessions(ctx))
	t.WantErr(context.Canceled, err)
	_, err = suite.Collect(l.Watch(ctx, "a", 1))
	t.WantErr(context.Canceled, err)
	_, err = erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.WantErr(context.Canceled, err)
	t.WantErr(context.Canceled, erase.Remove(ctx, l, "a"))
	_, err = verify.Session(ctx, l, "a")
	t.WantErr(context.Canceled, err)
	t.WantEqual("events", 2, len(t.Lines(l, "a")))
}

func testCancelLocked(t *env, holder *eventlog.Log) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 10})
	t.Fill(l, "a", 1)
	_, unlock, err := suite.Ability[eventlog.Locker](t, holder.Store()).Lock(t.Ctx, true)
	t.Must(err)
	defer unlock()
	big := suite.NewEvent("test:big", `"`+suite.Text("b", 100)+`"`)
	ctx, cancel := t.ShortContext()
	defer cancel()
	_, err = l.Append(ctx, "a", eventlog.Any(), big)
	t.WantErr(context.DeadlineExceeded, err)
	_, err = l.PutBlob(ctx, suite.NewReader("body"))
	t.WantErr(context.DeadlineExceeded, err)
	t.WantEqual("events", 1, len(t.Lines(l, "a")))
	unlock()
	t.Append(l, "a", eventlog.Any(), big)
}
