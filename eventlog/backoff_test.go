package eventlog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// contended is a store in which another process appends just before each of the first
// appends. Each append takes a millisecond.
type contended struct {
	*memory.Store
	rivals int
	after  func() // runs after each lost append
}

func (s *contended) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	time.Sleep(time.Millisecond)
	if s.rivals > 0 {
		s.rivals--
		rival := eventlog.Open(s.Store.Handle())
		if _, err := rival.Append(ctx, session, eventlog.Any(), event.UserMessage("rival")); err != nil {
			return err
		}
		defer s.after()
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

// A leader that keeps losing the head waits longer and longer, never long, and half a second
// in all. A single loss costs no wait.
func TestWaitsAfterLostHeads(t *testing.T) {
	for _, c := range []struct {
		rivals      int
		least, most time.Duration
	}{
		{0, 0, 0},
		{1, 0, 0},
		{40, 10 * time.Millisecond, 580 * time.Millisecond},
		{2000, 300 * time.Millisecond, 580 * time.Millisecond}, // half a second, and a wait that began before its end
	} {
		synctest.Test(t, func(t *testing.T) {
			l := eventlog.Open(&contended{memory.New(), c.rivals, func() {}})
			defer l.Close()
			start := time.Now()
			head, err := l.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("mine"))
			if err != nil || head.Seq != int64(c.rivals)+1 {
				t.Errorf("%d rivals: got %v, %v", c.rivals, head, err)
			}
			waited := time.Since(start) - time.Duration(c.rivals+1)*time.Millisecond
			if waited < c.least || waited > c.most {
				t.Errorf("%d rivals: waited %v, want %v to %v", c.rivals, waited, c.least, c.most)
			}
		})
	}
}

// A leader whose context ends while it waits returns at once, and nothing is written.
func TestContextEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &contended{Store: memory.New(), rivals: 1000}
		s.after = func() {
			if s.rivals == 900 {
				cancel()
			}
		}
		l := eventlog.Open(s)
		defer l.Close()
		if _, err := l.Append(ctx, "s", eventlog.Any(), event.UserMessage("mine")); !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnknownOutcome) {
			t.Errorf("got error %v", err)
		}
		if s.rivals != 900 {
			t.Errorf("%d rivals are left, want 900: the leader tried again after its context ended", s.rivals)
		}
	})
}
