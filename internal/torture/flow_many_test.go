//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/flow"
)

// manyJob runs many sessions at once with few descriptors. It reports how long their
// turns took, and the largest memory of the process.
func manyJob(ctx context.Context, b backend, j job) error {
	limit := syscall.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	log := b.log(j.Dir)
	s, err := openScript(j.Dir, j.Seed, 0)
	if err != nil {
		return err
	}
	m := &crowd{agent: s.agent(log), size: j.To, arrived: make(chan struct{})}
	m.agent.Turn = m.turn(s)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for n := range j.To {
		group.Go(func() {
			if err := m.visit(ctx, n); err != nil {
				cancel(err) // the others would wait for it
			}
		})
	}
	group.Wait()
	if err := errors.Join(context.Cause(ctx), log.Close()); err != nil {
		return err
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	fmt.Printf("together: %v\napart: %v\npeak memory: %d MiB\n", spread(m.together), spread(m.apart), usage.Maxrss>>10)
	return nil
}

// crowd is many sessions of one agent.
type crowd struct {
	agent *flow.Agent[tally]
	size  int

	mu              sync.Mutex
	count           int
	arrived         chan struct{} // closed when all sessions run a turn
	together, apart []time.Duration
}

// turn is a conversation. The first turn of a session ends after all sessions have begun
// theirs, so that all run at once.
func (m *crowd) turn(s *script) func(ctx context.Context, t *flow.Turn[tally]) error {
	return func(ctx context.Context, t *flow.Turn[tally]) error {
		if t.Index() == 0 {
			_, err := flow.Do(ctx, t, flow.Effect{Name: "meet"}, func(context.Context) (int, error) { return 0, m.meet(ctx) })
			if err != nil {
				return err
			}
		}
		if err := s.converse(ctx, t, 0); err != nil {
			return err
		}
		return t.Update(func(c *tally) error { c.Turns++; return nil })
	}
}

func (m *crowd) meet(ctx context.Context) error {
	m.mu.Lock()
	if m.count++; m.count == m.size {
		close(m.arrived)
	}
	m.mu.Unlock()
	select {
	case <-m.arrived:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// visit runs three turns of a session: two while all sessions run, and one at a random
// time, such that 100 turns begin in a second.
func (m *crowd) visit(ctx context.Context, n int) error {
	var out flow.Output[tally]
	for i := range 3 {
		if i == 2 {
			time.Sleep(rand.N(10 * time.Duration(m.size) * time.Millisecond))
		}
		begun := time.Now()
		var err error
		if out, err = m.agent.Run(ctx, fmt.Sprintf("session-%d", n), inputOf(i)); err != nil {
			return err
		}
		m.took(i, time.Since(begun))
	}
	if out.Custom.Turns != 3 {
		return fmt.Errorf("session %d ended %d turns, want 3", n, out.Custom.Turns)
	}
	return nil
}

func (m *crowd) took(turn int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch turn {
	case 1:
		m.together = append(m.together, d)
	case 2:
		m.apart = append(m.apart, d)
	}
}

func spread(times []time.Duration) string {
	slices.Sort(times)
	n := len(times)
	return fmt.Sprintf("%d turns, p50 %v, p99 %v", n, times[n/2].Round(100*time.Microsecond), times[n*99/100].Round(100*time.Microsecond))
}

// One process with 256 descriptors runs many more sessions at once. The long form has
// 1,000.
func TestManySessions(t *testing.T) {
	t.Parallel()
	sessions := *sessionsFlag
	if runtime.GOOS != "linux" {
		sessions = min(sessions, 50) // other systems need a descriptor for each
	}
	onEach(t, func(t *testing.T, s *fixture) {
		var said []string
		c := s.start(job{Do: "many", To: sessions}, func(line string) { said = append(said, line) })
		s.must(c.finish())
		t.Logf("%d sessions: %q", sessions, said)
		log := s.log()
		for n := 0; n < sessions; n += 1 + sessions/20 {
			s.must(verifySilent(s.ctx, log, fmt.Sprintf("session-%d", n)))
		}
	})
}
