//go:build unix

package torture

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// pauses is how many processes are stopped in one store.
var pauses = testsize.Pick(2, 4, 12)

// A writer is stopped at a random moment, with or without a lock. Meanwhile this
// process appends and reads with a deadline. Then the writer is continued or killed,
// and appends succeed.
func TestStoppedAnywhere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		c := s.startGroup(3, job{})
		log := s.log()
		me := &writer{log: log, seed: s.seed, name: len(c.members), report: func(verb string, n int, seq int64) {}}
		done := c.attempt(me, 0, testTimeout) // the store must exist before a process is stopped
		for range pauses {
			i := s.random.IntN(len(c.members))
			m := c.members[i]
			c.waitBusy(m)
			c.waitRandom(3 * time.Millisecond)
			s.must(m.cmd.Process.Signal(syscall.SIGSTOP))
			m.waitStopped()
			for range 4 {
				done += c.attempt(me, done, 20*time.Millisecond)
			}
			if s.backend.name == "sqlite" { // a process that is stopped while it changes the log's index holds up readers
				if err := c.read(log, readTime); !errors.Is(err, context.DeadlineExceeded) {
					s.must(err)
				}
			} else {
				s.must(c.read(log, testTimeout))
			}
			if s.random.IntN(2) == 0 {
				c.replace(i)
			} else {
				s.must(m.cmd.Process.Signal(syscall.SIGCONT))
			}
			done += c.attempt(me, done, testTimeout)
			s.must(c.read(log, testTimeout))
		}
		c.killAll()
		c.check(true)
		t.Logf("%d processes stopped, %d events acknowledged, none lost", pauses, c.ledger.events())
	})
}

// readTime is the deadline of a read of a database beside a stopped process.
const readTime = 2 * time.Second

// read checks the shared session, with a deadline.
func (c *group) read(log *eventlog.Log, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	w := checker{seed: c.seed, session: shared}
	return ignoreMissing(w.all(log.Read(ctx, shared, everything)))
}

// attempt tries a step with a deadline, and returns the number of steps done: 0 or 1.
func (c *group) attempt(w *writer, n int, patience time.Duration) int {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	step := stepOf(c.seed, w.name, n)
	seq, err := w.do(ctx, step, true)
	if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
		return 0
	}
	c.must(err)
	c.must(c.ledger.record(w.name, tried, n, 0))
	c.must(c.ledger.record(w.name, acknowledged, n, seq))
	return 1
}
