package torture

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"
)

// pauses is how many processes are stopped in one store.
const pauses = 12

// Writers are stopped wherever they are, with a lock or without. Meanwhile
// this process appends under a deadline, which it gets or which ends, and
// reads. Then the stopped one goes on, or is killed, and nothing waits any more.
func TestStoppedAnywhere(t *testing.T) {
	onEach(t, func(t *testing.T, s *scene) {
		c := s.crew(3, job{})
		log := s.log()
		me := &writer{log: log, seed: s.seed, name: len(c.members), say: func(verb string, n int, seq int64) {}}
		done := c.attempt(me, 0, patience) // nobody reads a store that is half made
		for range pauses {
			i := s.random.IntN(len(c.members))
			m := c.members[i]
			c.busy(m)
			c.linger(3 * time.Millisecond)
			s.must(m.cmd.Process.Signal(syscall.SIGSTOP))
			m.waitStopped()
			for range 4 {
				done += c.attempt(me, done, 20*time.Millisecond)
			}
			w := walk{seed: s.seed, session: shared}
			s.must(ignoreMissing(w.all(log.Read(s.ctx, shared, everything))))
			if s.random.IntN(2) == 0 {
				c.replace(i)
			} else {
				s.must(m.cmd.Process.Signal(syscall.SIGCONT))
			}
			done += c.attempt(me, done, patience)
		}
		c.buryAll()
		c.check(true)
		t.Logf("%d processes stopped, %d events acknowledged, none lost", pauses, c.ledger.events())
	})
}

// attempt tries a step under a deadline, and says how many steps were done.
func (c *crew) attempt(w *writer, n int, patience time.Duration) int {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	step := stepOf(c.seed, w.name, n)
	seq, err := w.do(ctx, step, true)
	if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
		return 0
	}
	c.must(err)
	c.must(c.ledger.note(w.name, tried, n, 0))
	c.must(c.ledger.note(w.name, acknowledged, n, seq))
	return 1
}
