package torture

import (
	"fmt"
	"sync"
)

// group is several processes that write to one store. Its ledger records their reports.
type group struct {
	*fixture
	ledger  *ledger
	job     job // the job of each member
	members []*member
	killed  int
	inStep  int // how many were killed during a step

	mu         sync.Mutex
	violations []error // reports that contradict the ledger
}

// member is a process of a group.
type member struct {
	*child
	writer int
	tries  chan struct{} // has an element after the member begins or ends a step
}

// startGroup starts n processes with the given job.
func (s *fixture) startGroup(n int, orders job) *group {
	c := &group{fixture: s, ledger: newLedger(s.seed), job: orders}
	for writer := range n {
		c.members = append(c.members, c.launch(writer))
	}
	return c
}

// launch starts a writer that continues after its last acknowledged step.
func (c *group) launch(writer int) *member {
	m := &member{writer: writer, tries: make(chan struct{}, 1)}
	j := c.job
	j.Do, j.Writer, j.From = "write", writer, c.ledger.next(writer)
	m.child = c.start(j, func(line string) { c.handle(m, line) })
	return m
}

func (c *group) handle(m *member, line string) {
	var verb string
	var n int
	var seq int64
	_, err := fmt.Sscan(line, &verb, &n, &seq)
	if err == nil {
		err = c.ledger.record(m.writer, verb, n, seq)
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

// waitBusy waits until a member begins or ends a step.
func (c *group) waitBusy(m *member) {
	c.Helper()
	select {
	case <-m.tries: // an old report
	default:
	}
	select {
	case <-m.tries:
	case <-m.silent:
		c.Fatalf("writer %d ended by itself: %v", m.writer, m.kill())
	case <-c.ctx.Done():
		c.Fatalf("writer %d does nothing", m.writer)
	}
}

// replace kills a member and starts it again.
func (c *group) replace(i int) {
	c.Helper()
	c.kill(i)
	c.members[i] = c.launch(c.members[i].writer)
}

// kill kills a member.
func (c *group) kill(i int) {
	c.Helper()
	if err := c.members[i].kill(); err != nil {
		c.Fatalf("writer %d: %v", c.members[i].writer, err)
	}
	c.killed++
	if c.ledger.inStep(c.members[i].writer) {
		c.inStep++
	}
}

// relaunch starts all members again.
func (c *group) relaunch() {
	c.Helper()
	for i, m := range c.members {
		c.members[i] = c.launch(m.writer)
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

// check opens the store and compares it with the ledger.
func (c *group) check(atRest bool) {
	c.Helper()
	log := c.backend.log(c.dir)
	err := c.ledger.check(c.ctx, log, atRest)
	if closing := log.Close(); err == nil {
		err = closing
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

// takeOver runs in this process, for each killed member, its interrupted step and one
// more.
func (c *group) takeOver() {
	c.Helper()
	log := c.backend.log(c.dir)
	for _, m := range c.members {
		next := c.ledger.next(m.writer)
		w := writer{log: log, seed: c.seed, name: m.writer, report: func(verb string, n int, seq int64) {
			c.must(c.ledger.record(m.writer, verb, n, seq))
		}}
		c.must(w.run(c.ctx, next, next+2))
	}
	c.must(log.Close())
}
