//go:build unix

package torture

import (
	"errors"
	"sync"
	"testing"
)

// Several processes, and two logs in this process, append to one shared session and to
// others. No event is lost, duplicated, merged with another or out of its writer's
// order.
func TestProcesses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		c := s.startGroup(groupSize, job{To: *stepsFlag})
		errs := s.work(c.ledger, groupSize, groupSize+1)
		for _, m := range c.members {
			s.must(m.finish())
		}
		s.must(errs())
		c.check(true)
		for writer := range groupSize + 2 {
			if n := c.ledger.next(writer); n != *stepsFlag {
				t.Errorf("writer %d made %d steps", writer, n)
			}
		}
		t.Logf("%d processes, %d events acknowledged, none lost", groupSize+1, c.ledger.events())
	})
}

// work runs writers in this process, each with its own log. The returned function waits
// for them.
func (s *fixture) work(l *ledger, writers ...int) (wait func() error) {
	var wg sync.WaitGroup
	errs := make([]error, len(writers))
	for i, name := range writers {
		log := s.log()
		wg.Go(func() {
			w := writer{log: log, seed: s.seed, name: name, report: func(verb string, n int, seq int64) {
				errs[i] = errors.Join(errs[i], l.record(name, verb, n, seq))
			}}
			errs[i] = errors.Join(w.run(s.ctx, 0, *stepsFlag), errs[i])
		})
	}
	return func() error {
		wg.Wait()
		return errors.Join(errs...)
	}
}
