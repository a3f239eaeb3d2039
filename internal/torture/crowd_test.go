package torture

import (
	"errors"
	"sync"
	"testing"
)

// Several processes, and two logs of this one, append to one session and to
// many: nothing is lost, doubled, glued together or out of its writer's order.
func TestProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, s *scene) {
		c := s.crew(crewSize, job{To: *stepsFlag})
		errs := s.work(c.ledger, crewSize, crewSize+1)
		for _, m := range c.members {
			s.must(m.finish())
		}
		s.must(errs())
		c.check(true)
		for writer := range crewSize + 2 {
			if n := c.ledger.next(writer); n != *stepsFlag {
				t.Errorf("writer %d made %d steps", writer, n)
			}
		}
		t.Logf("%d processes, %d events acknowledged, none lost", crewSize+1, c.ledger.events())
	})
}

// work lets writers run in this process, each on a log of its own; the
// function it returns waits for them.
func (s *scene) work(l *ledger, writers ...int) (wait func() error) {
	var wg sync.WaitGroup
	errs := make([]error, len(writers))
	for i, name := range writers {
		log := s.log()
		wg.Go(func() {
			w := writer{log: log, seed: s.seed, name: name, say: func(verb string, n int, seq int64) {
				errs[i] = errors.Join(errs[i], l.note(name, verb, n, seq))
			}}
			errs[i] = errors.Join(w.run(s.ctx, 0, *stepsFlag), errs[i])
		})
	}
	return func() error {
		wg.Wait()
		return errors.Join(errs...)
	}
}
