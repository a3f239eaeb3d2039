package torture

import (
	"fmt"
	"sync"
)

// crew is several processes that write to one store, and what they said.
type crew struct {
	*scene
	ledger  *ledger
	orders  job // what each member is to do
	members []*member
	killed  int
	within  int // how many of those died after they had begun a step

	mu   sync.Mutex
	lies []error // what was said that cannot be
}

// member is a process of a crew.
type member struct {
	*child
	writer int
	tries  chan struct{} // filled when it begins a step
}

// crew makes a crew of n processes, which write as orders say.
func (s *scene) crew(n int, orders job) *crew {
	c := &crew{scene: s, ledger: newLedger(s.seed), orders: orders}
	for writer := range n {
		c.members = append(c.members, c.launch(writer))
	}
	return c
}

// launch starts a writer where the one before it died.
func (c *crew) launch(writer int) *member {
	m := &member{writer: writer, tries: make(chan struct{}, 1)}
	j := c.orders
	j.Do, j.Writer, j.From = "write", writer, c.ledger.next(writer)
	m.child = c.start(j, func(line string) { c.hear(m, line) })
	return m
}

func (c *crew) hear(m *member, line string) {
	var verb string
	var n int
	var seq int64
	_, err := fmt.Sscan(line, &verb, &n, &seq)
	if err == nil {
		err = c.ledger.note(m.writer, verb, n, seq)
	}
	if err != nil {
		c.mu.Lock()
		c.lies = append(c.lies, fmt.Errorf("%q: %w", line, err))
		c.mu.Unlock()
	}
	select {
	case m.tries <- struct{}{}:
	default:
	}
}

// busy waits until a member begins or ends a step.
func (c *crew) busy(m *member) {
	c.Helper()
	select {
	case <-m.tries: // of long ago
	default:
	}
	select {
	case <-m.tries:
	case <-m.mute:
		c.Fatalf("writer %d ended by itself: %v", m.writer, m.kill())
	case <-c.ctx.Done():
		c.Fatalf("writer %d does nothing", m.writer)
	}
}

// replace kills a member and starts another in its place.
func (c *crew) replace(i int) {
	c.Helper()
	c.bury(i)
	c.members[i] = c.launch(c.members[i].writer)
}

// bury kills a member.
func (c *crew) bury(i int) {
	c.Helper()
	if err := c.members[i].kill(); err != nil {
		c.Fatalf("writer %d: %v", c.members[i].writer, err)
	}
	c.killed++
	if c.ledger.within(c.members[i].writer) {
		c.within++
	}
}

// relaunch starts everybody again.
func (c *crew) relaunch() {
	c.Helper()
	for i, m := range c.members {
		c.members[i] = c.launch(m.writer)
	}
}

// buryAll kills everybody as nearly at once as can be.
func (c *crew) buryAll() {
	c.Helper()
	for _, m := range c.members {
		_ = m.cmd.Process.Kill()
	}
	for i := range c.members {
		c.bury(i)
	}
}

// check opens the store anew and holds it against what was said.
func (c *crew) check(atRest bool) {
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
	for _, lie := range c.lies {
		c.Fatal(lie)
	}
}

// succeed does, in this process, the steps that the dead were in, and one more
// each.
func (c *crew) succeed() {
	c.Helper()
	log := c.backend.log(c.dir)
	for _, m := range c.members {
		next := c.ledger.next(m.writer)
		w := writer{log: log, seed: c.seed, name: m.writer, say: func(verb string, n int, seq int64) {
			c.must(c.ledger.note(m.writer, verb, n, seq))
		}}
		c.must(w.run(c.ctx, next, next+2))
	}
	c.must(log.Close())
}
