package projection

import (
	"hash/maphash"
	"slices"

	"github.com/convlog/convlog/event"
)

// emit shows the oldest messages of the block, each with the results of its calls in the
// order of the calls. It stops at a message that an item from index next on can change.
func (b *block) emit(next int) error {
	n := 0
	for n < len(b.nodes) && b.settled(b.nodes[n], next) {
		n++
	}
	if n == 0 {
		return nil
	}
	b.entries = slices.Grow(b.entries, n)
	for _, n := range b.nodes[:n] {
		b.showNode(n)
		b.forget(n, next)
	}
	b.nodes = slices.Clone(b.nodes[n:])
	return b.pass()
}

// settled reports whether no item from index next on changes the message or the results of
// its calls.
func (b *block) settled(n *node, next int) bool {
	if g := n.entry.Message.Group; g != "" && !b.ahead.isPast(g, next) {
		return false
	}
	for _, c := range n.calls {
		if c.result == nil && !b.ahead.isPast(c.id, next) {
			return false
		}
	}
	return true
}

// showNode shows a message and the results of its calls, and lets go of the results.
func (b *block) showNode(n *node) {
	m := &n.entry.Message
	delete(b.groups, groupKey{m.Group, m.Role})
	shows := b.shows == nil || b.shows(n.at)
	if shows {
		b.show(&n.entry)
	}
	for _, c := range n.calls {
		if c.result == nil {
			b.pairEarly(c.id)
		}
		if c.result == nil {
			result := event.ToolResult(c.id, c.name, event.Text(interruptedText))
			result.IsError, result.Interrupted = true, true
			c.result = &Entry{Made: madeInterrupted, Message: event.Message{Role: event.Tool, Parts: []event.Part{result}}}
		}
		b.answer(c.id, c.result.Made)
		if shows {
			b.show(c.result)
		}
		c.result = &shown
	}
}

// forget drops the calls of a message that was shown, if no item from index next on has
// their ids.
func (b *block) forget(n *node, next int) {
	for _, c := range n.calls {
		if b.ahead.last == nil || !b.ahead.isPast(c.id, next) {
			continue
		}
		if b.open[c.id] == c {
			delete(b.open, c.id)
		}
		if b.ends {
			delete(b.changed, c.id)
		}
	}
}

// shown is the result of a call whose result was shown.
var shown Entry

// pass yields the entries that were shown, if the layout has a yield.
func (l *layout) pass() error {
	if l.yield == nil {
		return nil
	}
	for _, e := range l.entries {
		if !l.yield(e) {
			return errStopped
		}
	}
	clear(l.entries)
	l.entries = l.entries[:0]
	return nil
}

// lookahead has the last item of a block for each call id and each group, by their hashes.
// The zero value is of a block without items.
type lookahead struct {
	seed maphash.Seed
	last map[uint64]int // the index of the item
}

// lookAhead reads the items of a block. The calls of executions get their results after
// the last item.
func lookAhead(r itemRange, window int, executions []item) (lookahead, error) {
	a := lookahead{seed: maphash.MakeSeed(), last: map[uint64]int{}}
	err := r.decode(window, func(next int, pieces []piece) error {
		for i := range pieces {
			a.see(&pieces[i].message, next-len(pieces)+i)
		}
		return nil
	})
	for i := range executions {
		a.last[a.hash(executions[i].callID())] = r.to
	}
	return a, err
}

// see notes the group, the calls and the results of a message.
func (a *lookahead) see(m *event.Message, at int) {
	if m.Group != "" {
		a.last[a.hash(m.Group)] = at
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == event.ToolCallPart || p.Type == event.ToolResultPart {
			a.last[a.hash(p.CallID)] = at
		}
	}
}

// isPast reports whether no item from index next on has the call id or the group.
func (a *lookahead) isPast(id string, next int) bool {
	return a.last == nil || a.last[a.hash(id)] < next
}

func (a *lookahead) hash(id string) uint64 { return maphash.String(a.seed, id) }
