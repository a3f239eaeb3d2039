package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

var cancelCases = []testCase{
	{
		name:        "before an append",
		explanation: "An append whose context has ended gives the context's error, and stores nothing.",
		run:         testCancelBefore,
	},
	{
		name:        "during appends",
		explanation: "An append that is cancelled at any moment is whole or absent: absent with the context's error, either with ErrUnknownOutcome, and then a retry stores it once.",
		run:         testCancelDuring,
	},
	{
		name:        "of one among many",
		explanation: "Cancelling one append does not disturb those of others that wait with it.",
		run:         testCancelOne,
	},
	{
		name:        "during a read",
		explanation: "A read whose context ends on the way stops with the context's error.",
		run:         testCancelRead,
	},
	{
		name:        "before anything else",
		explanation: "Every method honours a context that has ended.",
		run:         testCancelOthers,
	},
	{
		name:        "waiting for the store lock",
		explanation: "An append that needs the store lock gives up when its context ends, while another holds it, and stores nothing.",
		needs:       []Need{Locker, Blobs},
		run:         func(t *env) { testCancelLocked(t, t.log()) },
	},
	{
		name:        "waiting for another handle's lock",
		explanation: "An append that needs the store lock gives up when its context ends, while another handle holds it, and stores nothing.",
		needs:       []Need{Locker, Blobs, Handles},
		run:         func(t *env) { testCancelLocked(t, t.second()) },
	},
}

func (t *env) ended() context.Context {
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	return ctx
}

func testCancelBefore(t *env) {
	l := t.log()
	head := t.fill(l, "a", 2)
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.At(head), eventlog.Any().Durable()} {
		_, err := l.Append(t.ended(), "a", x, note(1))
		t.wantErr(context.Canceled, err)
	}
	_, err := l.Append(t.ended(), "b", eventlog.New(), note(1))
	t.wantErr(context.Canceled, err)
	t.same("events", 2, len(t.lines(l, "a")))
	t.missing(l, "b")
}

// cancelled is one append that may have been cancelled, and what came of it.
type cancelled struct {
	events []event.Event
	err    error
}

func testCancelDuring(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	const writers, each = 4, 60
	appends := make([][]cancelled, writers)
	_ = together(writers, func(i int) error {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		for range each {
			ctx, cancel := context.WithCancel(t.ctx)
			timer := time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
			c := cancelled{events: notes(3)}
			_, c.err = l.Append(ctx, "a", eventlog.Any(), c.events...)
			timer.Stop()
			cancel()
			appends[i] = append(appends[i], c)
		}
		return nil
	})
	t.outcomes(l, slices.Concat(appends...))
	t.sound(l, "a")
	t.sound(t.reopen(), "a")
}

// outcomes makes sure that what cancelled appends left is what they said, and
// that a retry stores each once.
func (t *env) outcomes(l *eventlog.Log, appends []cancelled) {
	t.Helper()
	found := t.counts(l)
	for _, c := range appends {
		t.outcome(c, found)
		if c.err != nil {
			t.append(l, "a", retryOf(eventlog.Any(), c.err), c.events...)
		}
	}
	found = t.counts(l)
	for _, c := range appends {
		t.same("events after the retry", 3, c.places(found))
	}
}

// outcome makes sure that what a cancelled append left is what it said.
func (t *env) outcome(c cancelled, counts map[string]int) {
	t.Helper()
	found := c.places(counts)
	switch unknown := errors.Is(c.err, eventlog.ErrUnknownOutcome); {
	case c.err == nil && found != 3:
		t.Fatalf("an acknowledged append left %d of its 3 events", found)
	case c.err != nil && !unknown && !errors.Is(c.err, context.Canceled):
		t.Fatalf("a cancelled append gave error %v", c.err)
	case c.err != nil && !unknown && found != 0:
		t.Fatalf("an append that gave %v left %d of its 3 events", c.err, found)
	case unknown && found != 0 && found != 3:
		t.Fatalf("an append with an unknown outcome left %d of its 3 events", found)
	}
}

// counts says how often each id stands in the session.
func (t *env) counts(l *eventlog.Log) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for e, err := range l.Store().Read(t.ctx, "a", eventlog.Span{}) {
		t.must(err)
		counts[e.ID.String()]++
	}
	return counts
}

// places counts how many times the append's events stand in the session.
func (c *cancelled) places(counts map[string]int) (n int) {
	for _, id := range idsOf(c.events) {
		n += counts[id]
	}
	return n
}

func testCancelOne(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	var stored atomic.Int64
	errs := together(racers, func(i int) error {
		for n := range 20 {
			if i%4 == 0 {
				_, _ = l.Append(ctx, "a", eventlog.Any(), note(n))
			} else if _, err := l.Append(t.ctx, "a", eventlog.Any(), newEvent("test:kept", "1")); err != nil {
				return err
			}
			if stored.Add(1) == 100 {
				cancel()
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
	kept := 0
	for _, e := range t.read(l, "a", eventlog.All()) {
		if e.Type == "test:kept" {
			kept++
		}
	}
	t.same("events of those that were not cancelled", racers*3/4*20, kept)
	t.sound(l, "a")
}

func testCancelRead(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), notes(2000)...)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward()} {
		ctx, cancel := context.WithCancel(t.ctx)
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
		t.wantErr(context.Canceled, last)
	}
}

func testCancelOthers(t *env) {
	l := t.log()
	t.fill(l, "a", 2)
	ctx := t.ended()
	_, err := l.Head(ctx, "a")
	t.wantErr(context.Canceled, err)
	_, err = l.Event(ctx, "a", 1)
	t.wantErr(context.Canceled, err)
	_, err = collect(l.Sessions(ctx))
	t.wantErr(context.Canceled, err)
	_, err = collect(l.Watch(ctx, "a", 1))
	t.wantErr(context.Canceled, err)
	_, err = erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.wantErr(context.Canceled, err)
	t.wantErr(context.Canceled, erase.Remove(ctx, l, "a"))
	_, err = verify.Session(ctx, l, "a")
	t.wantErr(context.Canceled, err)
	t.same("events", 2, len(t.lines(l, "a")))
}

func testCancelLocked(t *env, holder *eventlog.Log) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 10})
	t.fill(l, "a", 1)
	_, unlock, err := ability[eventlog.Locker](t, holder.Store()).Lock(t.ctx, true)
	t.must(err)
	defer unlock()
	big := newEvent("test:big", `"`+text("b", 100)+`"`)
	ctx, cancel := t.briefly()
	defer cancel()
	_, err = l.Append(ctx, "a", eventlog.Any(), big)
	t.wantErr(context.DeadlineExceeded, err)
	_, err = l.PutBlob(ctx, newReader("body"))
	t.wantErr(context.DeadlineExceeded, err)
	t.same("events", 1, len(t.lines(l, "a")))
	unlock()
	t.append(l, "a", eventlog.Any(), big)
}
