package flow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

// forgetful is a store that loses leases when it is told to.
type forgetful struct {
	eventlog.Store
	eventlog.Leaser
	away int // how often the store cannot be reached after a loss

	mu    sync.Mutex
	held  eventlog.Lease // the newest lease
	lost  chan struct{}  // of the newest lease
	taken []string
	fails int
}

func (s *forgetful) Unwrap() eventlog.Store { return s.Store }

type lossy struct {
	eventlog.Lease
	lost chan struct{}
}

func (l lossy) Lost() <-chan struct{} { return l.lost }

func (s *forgetful) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return nil, fmt.Errorf("%w: the server starts", eventlog.ErrUnavailable)
	}
	l, err := s.Leaser.Lease(ctx, name)
	if err != nil {
		return nil, err
	}
	s.held, s.lost = l, make(chan struct{})
	s.taken = append(s.taken, name)
	return lossy{l, s.lost}, nil
}

func (s *forgetful) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = s.away
	_ = s.held.Release() // it is free for others before its holder hears of the loss
	close(s.lost)
}

func newForgetful(away int) *forgetful {
	m := memory.New()
	leaser, _ := eventlog.As[eventlog.Leaser](eventlog.Store(m))
	return &forgetful{Store: m, Leaser: leaser, away: away}
}

// When the store loses the lease, the context of the effect ends. The runner takes the lease
// again before it appends, and runs the effect again.
func TestALostLeaseIsTakenAgain(t *testing.T) {
	for _, away := range []int{0, 3} {
		store := newForgetful(away)
		log := eventlog.Open(store)
		var attempts []int
		a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
			n, err := flow.Do(ctx, tn, flow.Effect{Name: "work"}, func(ctx context.Context) (int, error) {
				x, _ := flow.FromContext(ctx)
				if attempts = append(attempts, x.Attempt); x.Attempt > 1 {
					return x.Attempt, nil
				}
				store.lose()
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if err == nil {
				err = tn.Add(said(fmt.Sprint("attempt ", n)))
			}
			return err
		}}
		out, err := a.Run(t.Context(), "s", flow.Text("go"))
		if err != nil || out.Text() != "attempt 2" || len(attempts) != 2 {
			t.Errorf("away %d: %q, %v, attempts %v", away, out.Text(), err, attempts)
		}
		if len(store.taken) != 2 || store.taken[0] != store.taken[1] {
			t.Errorf("away %d: took %q", away, store.taken)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Another runner claims the session while the lease is lost: the first one appends nothing more.
func TestALostLeaseAfterATakeOver(t *testing.T) {
	store := newForgetful(0)
	log := eventlog.Open(store)
	defer log.Close()
	var after event.Head
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "work"}, func(ctx context.Context) (int, error) {
			store.lose()
			<-ctx.Done()
			var err error
			if after, err = flow.TakeOver(t.Context(), log, "s", "ada"); err != nil {
				t.Error(err)
			}
			return 0, ctx.Err()
		})
		return err
	}}
	if _, err := a.Run(t.Context(), "s", flow.Text("go")); !errors.Is(err, flow.ErrOvertaken) {
		t.Errorf("got error %v, want ErrOvertaken", err)
	}
	if head, err := log.Head(t.Context(), "s"); err != nil || head != after {
		t.Errorf("the head is %v, %v; want %v", head, err, after)
	}
}
