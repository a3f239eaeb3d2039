//go:build unix

package torture

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// group is several processes that write to one store. Its ledger records their reports.
type group struct {
	*fixture
	ledger  *ledger
	job     job // the job of each member
	writers int // of each member
	members []*member
	killed  int
	inStep  int // how many were killed during a step

	mu         sync.Mutex
	violations []error // reports that contradict the ledger
}

// member is a process of a group.
type member struct {
	*child
	writers []int
	tries   chan struct{} // has an element after a writer begins or ends a step
}

// startGroup starts n processes with the given job, a writer each.
func (s *fixture) startGroup(n int, orders job) *group { return s.startGroups(n, 1, orders) }

// startGroups starts n processes with the given job and several writers each.
func (s *fixture) startGroups(n, writers int, orders job) *group {
	c := &group{fixture: s, ledger: newLedger(s.seed), job: orders, writers: writers}
	for i := range n {
		c.members = append(c.members, c.launch(i))
	}
	return c
}

// launch starts member i, whose writers continue after their last acknowledged steps.
func (c *group) launch(i int) *member {
	m := &member{tries: make(chan struct{}, 1)}
	j := c.job
	j.Do, j.Writer = "write", i*c.writers
	for w := range c.writers {
		m.writers = append(m.writers, j.Writer+w)
		j.Steps = append(j.Steps, c.ledger.next(j.Writer+w))
	}
	m.child = c.start(j, func(line string) { c.handle(m, line) })
	return m
}

func (c *group) handle(m *member, line string) {
	var verb string
	var n, writer int
	var seq int64
	_, err := fmt.Sscan(line, &verb, &n, &seq, &writer)
	if err == nil {
		err = c.ledger.record(writer, verb, n, seq)
	}
	if err != nil {
		c.mu.Lock()
		c.violations = append(c.violations, fmt.Errorf("%q: %w", line, err))
		c.mu.Unlock()
	}
	select {
	case m.tries <- struct{}{}:
	default:
	}
}

// longestSilence bounds the wait for a step of a member: on a busy machine its last one may
// wait for locks that expire.
const longestSilence = 2 * time.Minute

// waitBusy waits until a member begins or ends a step. If that takes too long, the stacks of
// the members and of the server are logged.
func (c *group) waitBusy(m *member) {
	c.Helper()
	select {
	case <-m.tries: // an old report
	default:
	}
	select {
	case <-m.tries:
	case <-m.silent:
		c.Fatalf("writers %d ended by themselves: %v", m.writers, m.kill())
	case <-time.After(longestSilence):
		for _, other := range c.members {
			c.Logf("writers %d:\n%s", other.writers, other.stacks())
		}
		if c.serverStacks != nil {
			c.Logf("the server:\n%s", c.serverStacks())
		}
		c.Fatalf("writers %d have done nothing for %v", m.writers, longestSilence)
	}
}

// waitAcknowledged waits until n more steps are acknowledged.
func (c *group) waitAcknowledged(n int) {
	c.Helper()
	for before := c.ledger.steps(); c.ledger.steps() < before+n; time.Sleep(time.Millisecond) {
		c.must(c.ctx.Err())
	}
}

// replace kills a member and starts it again.
func (c *group) replace(i int) {
	c.Helper()
	c.kill(i)
	c.members[i] = c.launch(i)
}

// kill kills a member.
func (c *group) kill(i int) {
	c.Helper()
	if err := c.members[i].kill(); err != nil {
		c.Fatalf("writers %d: %v", c.members[i].writers, err)
	}
	c.killed++
	if slices.ContainsFunc(c.members[i].writers, c.ledger.inStep) {
		c.inStep++
	}
}

// relaunch starts all members again.
func (c *group) relaunch() {
	c.Helper()
	for i := range c.members {
		c.members[i] = c.launch(i)
	}
}

// killAll kills all members as simultaneously as possible.
func (c *group) killAll() {
	c.Helper()
	for _, m := range c.members {
		_ = m.cmd.Process.Kill()
	}
	for i := range c.members {
		c.kill(i)
	}
}

// check opens the store and compares it with the ledger. While the server does not answer, it
// asks again: the machine may be busy.
func (c *group) check(atRest bool) {
	c.Helper()
	err := c.compare(atRest)
	for isOutage(err) && c.ctx.Err() == nil {
		err = c.compare(atRest)
	}
	if err != nil {
		c.Fatalf("after %v acknowledged events: %v", c.ledger.events(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lie := range c.violations {
		c.Fatal(lie)
	}
}

func (c *group) compare(atRest bool) error {
	log := c.backend.log(c.dir)
	err := c.ledger.check(c.ctx, log, atRest)
	return errors.Join(err, log.Close())
}

// takeOver runs in this process, for each writer of the killed members, its interrupted
// step and one more.
func (c *group) takeOver() {
	c.Helper()
	log := c.backend.log(c.dir)
	for name := range len(c.members) * c.writers {
		next := c.ledger.next(name)
		w := writer{log: log, seed: c.seed, name: name, report: func(verb string, n int, seq int64) {
			c.must(c.ledger.record(name, verb, n, seq))
		}}
		c.must(w.run(c.ctx, next, next+2))
	}
	c.must(log.Close())
}
