package projection

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
)

// layout puts a history in order, block by block: a block is what came between
// two freezes, and depends on those before it alone.
type layout struct {
	options RenderOptions
	cleared map[string]int64
	entries []Entry
	// answered says how the newest call of each id was answered, in the blocks
	// that are laid out.
	answered map[string]Made
}

// node is an entry of a block, with the calls that it makes.
type node struct {
	entry Entry
	calls []*call
}

// call is a call of a tool and what answers it.
type call struct {
	id, name string
	result   *Entry
	before   *call // an older one of the same id
}

// unanswered is the newest of c and those before it that has no result; nil if
// all have one.
func (c *call) unanswered() *call {
	for c != nil && c.result != nil {
		c = c.before
	}
	return c
}

// block is the part of a layout that is still open.
type block struct {
	*layout
	nodes  []*node
	groups map[groupKey]*node
	open   map[string]*call // the newest call of each id
}

type groupKey struct {
	group string
	role  event.Role
}

// block lays out the items of a block and appends it. In the first one, which
// has a working set, the contexts that are placed as prefix lead.
func (l *layout) block(items, executions []item, lead *workingSet) error {
	b := block{layout: l, groups: map[groupKey]*node{}, open: map[string]*call{}}
	if lead != nil {
		if err := b.lead(items, lead); err != nil {
			return err
		}
	}
	for i := range items {
		var p piece
		if err := items[i].read(&p); err != nil {
			return err
		}
		switch {
		case p.prefix && lead != nil: // it led
		case p.context != "":
			b.context(&p)
		default:
			b.said(&p)
		}
	}
	if err := b.executed(executions); err != nil {
		return err
	}
	b.emit()
	return nil
}

// lead begins the history with the prefix contexts and the working set.
func (b *block) lead(items []item, files *workingSet) error {
	for i := range items {
		if items[i].kind.plain() != contextItem {
			continue
		}
		var p piece
		if err := items[i].read(&p); err != nil {
			return err
		}
		if p.prefix {
			b.context(&p)
		}
	}
	if !files.isZero() {
		b.add(Entry{Message: files.message(), Context: workingSetKind, Made: MadeWorkingSet})
	}
	return nil
}

func (b *block) add(e Entry) *node {
	n := &node{entry: e}
	b.nodes = append(b.nodes, n)
	return n
}

func (b *block) context(p *piece) {
	b.add(Entry{Seq: p.seq, Message: p.message, Context: p.context, Made: p.made})
}

// said takes in a message: its results go to their calls, the rest stands where
// it is.
func (b *block) said(p *piece) {
	results, rest := split(p.message.Parts, event.ToolResultPart)
	for _, r := range results {
		b.result(p, r, len(results) == 1)
	}
	m := p.message
	m.Parts = rest
	if m.Role == event.Tool {
		m.Role = event.User // what came along with the results
	}
	if m.Role != event.Assistant {
		_, m.Parts = split(m.Parts, event.ToolCallPart)
	}
	if len(m.Parts) == 0 {
		return
	}
	b.calls(b.grouped(p, m))
}

// split takes the parts of one type out of the others.
func split(parts []event.Part, t event.PartType) (of, others []event.Part) {
	n := 0
	for i := range parts {
		if parts[i].Type == t {
			n++
		}
	}
	if n == 0 {
		return nil, parts
	}
	for i := range parts {
		if parts[i].Type == t {
			of = append(of, parts[i])
		} else {
			others = append(others, parts[i])
		}
	}
	return of, others
}

// grouped adds a message, or its parts to the message that it is a piece of.
// The calls of from on are new.
func (b *block) grouped(p *piece, m event.Message) (n *node, from int) {
	key := groupKey{m.Group, m.Role}
	if n = b.groups[key]; m.Group != "" && n != nil {
		from = len(n.entry.Message.Parts)
		n.entry.fold(p.seq, m, p.made)
		return n, from
	}
	n = b.add(Entry{Seq: p.seq, Message: m, Made: p.made})
	if m.Group != "" {
		b.groups[key] = n
	}
	return n, 0
}

// fold adds a further piece of the same message.
func (e *Entry) fold(seq int64, m event.Message, made Made) {
	if len(e.Seqs) == 0 && e.Seq > 0 {
		e.Seqs = []int64{e.Seq}
	}
	if seq > 0 {
		e.Seqs = append(e.Seqs, seq)
	}
	if e.Seq == 0 {
		e.Seq = seq
	}
	first := &e.Message
	first.Parts = append(first.Parts[:len(first.Parts):len(first.Parts)], m.Parts...)
	if !m.Usage.IsZero() {
		first.Usage = m.Usage
	}
	if m.StopReason != "" {
		first.StopReason = m.StopReason
	}
	if m.ResponseID != "" {
		first.ResponseID = m.ResponseID
	}
	if m.Extra != nil {
		first.Extra = m.Extra
	}
	if made != AsSaid {
		e.Made = made
	}
}

// calls notes the calls of a message; one that repeats in it is left out.
func (b *block) calls(n *node, from int) {
	repeats := func(p event.Part) bool {
		if p.Type != event.ToolCallPart {
			return false
		}
		if n.makes(p.CallID) {
			return true
		}
		c := &call{id: p.CallID, name: p.Name, before: b.open[p.CallID]}
		n.calls, b.open[p.CallID] = append(n.calls, c), c
		return false
	}
	parts := &n.entry.Message.Parts
	*parts = append((*parts)[:from], slices.DeleteFunc((*parts)[from:], repeats)...)
}

func (n *node) makes(id string) bool {
	for _, c := range n.calls {
		if c.id == id {
			return true
		}
	}
	return false
}

// result gives a result to its call. One whose call was rendered into a request
// as interrupted comes late, as a message; one without a call is left out.
func (b *block) result(p *piece, part event.Part, alone bool) {
	m := p.message
	m.Role, m.Parts = event.Tool, []event.Part{part}
	if !alone {
		m.Extra = nil
	}
	e := Entry{Seq: p.seq, Message: m, Made: p.made}
	b.clear(&e, p.source)
	if called := b.open[part.CallID]; called != nil {
		if c := called.unanswered(); c != nil {
			c.result = &e
		}
		return
	}
	if b.answered[part.CallID] != MadeInterrupted || part.Interrupted {
		return
	}
	b.answered[part.CallID] = MadeLate
	note := event.Text(fmt.Sprintf("[late result of call %s]", part.CallID))
	e.Message.Role, e.Message.Parts = event.User, append([]event.Part{note}, part.Content...)
	e.Made = MadeLate
	b.add(e)
}

// clear takes out the content of a result that a compaction cleared.
func (l *layout) clear(e *Entry, source int64) {
	part := &e.Message.Parts[0]
	if source < l.cleared[part.CallID] {
		part.Content = []event.Part{event.Text(clearedText)}
		e.Made = MadeCleared
	}
}

// executed gives the recorded results to the calls that got no other.
func (b *block) executed(executions []item) error {
	for i := range slices.Backward(executions) { // the newest counts
		x := &executions[i]
		id, result, err := x.executed()
		if err != nil {
			return err
		}
		if c := b.open[id].unanswered(); c != nil {
			c.result = &Entry{Seq: x.seq, Message: event.Message{Role: event.Tool, Parts: []event.Part{result}}, Made: MadeExecution}
			b.clear(c.result, x.seq)
		}
	}
	return nil
}

// emit appends the block to the history: after each message the results of its
// calls, in their order.
func (b *block) emit() {
	for _, n := range b.nodes {
		b.show(n.entry)
		for _, c := range n.calls {
			if c.result == nil {
				c.result = &Entry{Made: MadeInterrupted, Message: event.Message{Role: event.Tool,
					Parts: []event.Part{event.InterruptedResult(c.id, c.name, event.Text(interruptedText))}}}
			}
			b.answered[c.id] = c.result.Made
			b.show(*c.result)
		}
	}
}

// show appends an entry as the options want it, unless nothing is left of it.
func (l *layout) show(e Entry) {
	m := &e.Message
	if e.Context != "" {
		m.Role = l.options.ContextRole
	}
	if l.options.DemoteSystem && (m.Role == event.System || m.Role == event.Developer) {
		m.Role = event.User
	}
	m.Parts = l.options.parts(m)
	if len(m.Parts) > 0 {
		l.entries = append(l.entries, e)
	}
}

// parts are those of m that whom it is rendered for understands.
func (o *RenderOptions) parts(m *event.Message) []event.Part {
	same := (o.Provider == "" || o.Provider == m.Provider) && (o.Model == "" || o.Model == m.Model)
	if same || m.Role != event.Assistant {
		return m.Parts
	}
	kept := make([]event.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if !signed(&p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// signed reports whether only the model that made a part understands it.
func signed(p *event.Part) bool {
	switch p.Type {
	case event.ReasoningPart:
		return p.Signature != "" || p.Encrypted != "" || p.Redacted
	case event.OpaquePart:
		return true
	default:
		return false
	}
}
