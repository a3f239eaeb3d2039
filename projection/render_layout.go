package projection

import (
	"slices"

	"github.com/convlog/convlog/event"
)

// layout orders the entries of a history block by block. A block is the items between
// two freezes. It depends on the blocks before it only.
type layout struct {
	options RenderOptions
	window  int // the number of items that are decoded before they are laid out
	cleared map[string]int64
	entries []Entry
	// yield gets the entries as soon as no later item changes them; false stops the
	// layout. If it is nil, entries collects them.
	yield func(Entry) bool
	// shows reports whether the message of an item is shown; nil shows all.
	shows func(at int) bool
	// ends says that no block follows.
	ends bool
	// answered maps the newest call of each id to the kind of its result, in the
	// frozen blocks.
	answered map[string]string
}

// node is an entry of a block and the calls in it.
type node struct {
	entry Entry
	calls []*call
	at    int // the index of the item
}

// call is a tool call and its result.
type call struct {
	id, name string
	result   *Entry
	before   *call // an older call with the same id and without a result
}

// unanswered returns the newest call without a result: c or an older call of its id.
// It is nil if all have one.
func (c *call) unanswered() *call {
	for c != nil && c.result != nil {
		c = c.before
	}
	return c
}

// block is the open block of a layout.
type block struct {
	*layout
	nodes  []*node
	groups map[groupKey]*node
	open   map[string]*call // the newest call of each id
	// early are the results that come before their calls, by call id. Some programs
	// write them in this order.
	early map[string]*Entry
	ahead lookahead
	at    int // the index of the item that is added
	// changed are the entries of layout.answered that the block adds or changes.
	changed map[string]string
}

type groupKey struct {
	group string
	role  event.Role
}

// itemRange is the items of a list from index from up to index to.
type itemRange struct {
	*itemList
	from, to int
	stored   *storedItems // reads the payloads that are in the log; nil if none is there only
}

// block lays out the items of a block. The first block has files; it begins with the
// contexts of placement prefix and the working set. answered are the changes of l.answered.
func (l *layout) block(r itemRange, executions []item, files *workingSet) (answered map[string]string, err error) {
	b := block{layout: l, nodes: make([]*node, 0, min(r.to-r.from, l.window))}
	if files != nil {
		if err := b.prefix(r, files); err != nil {
			return nil, err
		}
	}
	if l.yield != nil && !r.isOneWindow(l.window) {
		if b.ahead, err = lookAhead(r, l.window, executions); err != nil {
			return nil, err
		}
	}
	err = r.decode(l.window, func(next int, pieces []piece) error {
		for i := range pieces {
			b.at = next - len(pieces) + i
			b.piece(&pieces[i], files != nil)
		}
		if l.yield == nil || next == r.to {
			return nil
		}
		return b.emit(next)
	})
	if err == nil {
		err = b.executed(executions)
	}
	if err == nil {
		err = b.emit(r.to + 1)
	}
	return b.changed, err
}

// decode decodes the items in windows. next is the index of the item after a window. The
// pieces are valid until visit returns.
func (r itemRange) decode(window int, visit func(next int, pieces []piece) error) error {
	all := make([]piece, min(r.to-r.from, window))
	for at := r.from; at < r.to; {
		items, err := r.load(at, window)
		if err != nil {
			return err
		}
		pieces := all[:len(items)]
		if err := decodeItems(items, pieces); err != nil {
			return err
		}
		at += len(items)
		if err := visit(at, pieces); err != nil {
			return err
		}
	}
	return nil
}

// load returns the items of the window that begins at an index, with their payloads.
func (r itemRange) load(at, window int) ([]item, error) {
	items := fewBytes(r.slice(at, min(at+window, r.to)))
	if r.stored == nil {
		return items, nil
	}
	return r.stored.load(r.itemList, at, len(items), window)
}

// isOneWindow reports whether decode visits all items at once.
func (r itemRange) isOneWindow(window int) bool {
	if r.to-r.from > window {
		return false
	}
	size := 0
	for it := range r.within(r.from, r.to) {
		size += it.bytes()
	}
	return size < windowBytes
}

// fewBytes returns the first of the items, whose payloads have about windowBytes.
func fewBytes(items []item) []item {
	size := 0
	for i := range items {
		if size += items[i].bytes(); size >= windowBytes {
			return items[:i+1]
		}
	}
	return items
}

// piece adds a decoded item. The contexts of placement prefix are in the first block
// already.
func (b *block) piece(p *piece, first bool) {
	switch {
	case p.prefix && first:
	case p.context != "":
		b.context(p)
	default:
		b.message(p)
	}
}

// prefix begins the history with the prefix contexts and the working set.
func (b *block) prefix(r itemRange, files *workingSet) error {
	for it := range r.within(r.from, r.to) {
		if it.kind != contextItem || it.size > 0 { // an item holds the payload of a prefix
			continue
		}
		var p piece
		if err := it.decode(&p); err != nil {
			return err
		}
		if p.prefix {
			b.context(&p)
		}
	}
	if !files.isZero() {
		b.add(Entry{Message: files.message(), Context: workingSetKind, Made: madeWorkingSet})
	}
	return nil
}

func (b *block) add(e Entry) *node {
	n := &node{entry: e, at: b.at}
	b.nodes = append(b.nodes, n)
	return n
}

func (b *block) context(p *piece) {
	b.add(Entry{Seq: p.seq, Message: p.message, Context: p.context, Made: p.made})
}

// message adds a message. Its results go to their calls; the other parts stay an
// entry.
func (b *block) message(p *piece) {
	results, rest := splitParts(p.message.Parts, event.ToolResultPart)
	for i := range results {
		b.result(p, results[i:i+1:i+1], len(results) == 1)
	}
	m := p.message
	m.Parts = rest
	if m.Role == event.Tool {
		m.Role = event.User // parts next to the results
	}
	if m.Role != event.Assistant {
		_, m.Parts = splitParts(m.Parts, event.ToolCallPart)
	}
	if len(m.Parts) == 0 {
		return
	}
	b.calls(b.grouped(p, m))
}

// splitParts separates the parts of one type from the others.
func splitParts(parts []event.Part, t event.PartType) (of, others []event.Part) {
	n := 0
	for i := range parts {
		if parts[i].Type == t {
			n++
		}
	}
	switch n {
	case 0:
		return nil, parts
	case len(parts):
		return parts, nil
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

// grouped adds a message, or adds its parts to the first message of its group. The
// parts from index from are new.
func (b *block) grouped(p *piece, m event.Message) (n *node, from int) {
	key := groupKey{m.Group, m.Role}
	if n = b.groups[key]; m.Group != "" && n != nil {
		from = len(n.entry.Message.Parts)
		n.entry.fold(p.seq, m, p.made)
		return n, from
	}
	n = b.add(Entry{Seq: p.seq, Message: m, Made: p.made})
	if m.Group != "" {
		if b.groups == nil {
			b.groups = map[groupKey]*node{}
		}
		b.groups[key] = n
	}
	return n, 0
}

// fold adds another piece of the same message.
func (e *Entry) fold(seq int64, m event.Message, made string) {
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
	if made != "" {
		e.Made = made
	}
}

// calls adds the calls of a message. It removes a call that repeats in the message.
func (b *block) calls(n *node, from int) {
	repeats := func(p *event.Part) bool {
		if p.Type != event.ToolCallPart {
			return false
		}
		if n.makes(p.CallID) {
			return true
		}
		c := &call{id: p.CallID, name: p.Name, before: b.open[p.CallID].unanswered()}
		if b.open == nil {
			b.open = map[string]*call{}
		}
		n.calls, b.open[p.CallID] = append(n.calls, c), c
		return false
	}
	parts, first := n.entry.Message.Parts, -1 // the first call that repeats
	var rest []event.Part
	for i := from; i < len(parts); i++ {
		switch again := repeats(&parts[i]); {
		case again && first < 0:
			first = i
		case !again && first >= 0:
			rest = append(rest, parts[i])
		}
	}
	if first >= 0 { // the message may be shared, so its parts stay
		n.entry.Message.Parts = slices.Concat(parts[:first], rest)
	}
}

func (n *node) makes(id string) bool {
	for _, c := range n.calls {
		if c.id == id {
			return true
		}
	}
	return false
}

// show applies the options to an entry and appends it. It leaves out an entry without
// parts.
func (l *layout) show(e *Entry) {
	m := &e.Message
	if e.Context != "" {
		m.Role = l.options.ContextRole
	}
	if l.options.DemoteSystem && (m.Role == event.System || m.Role == event.Developer) {
		m.Role = event.User
	}
	m.Parts = l.options.parts(m)
	if len(m.Parts) > 0 {
		l.entries = append(l.entries, *e)
	}
}

// parts returns the parts of m that the target model accepts.
func (o *RenderOptions) parts(m *event.Message) []event.Part {
	same := (o.Provider == "" || o.Provider == m.Provider) && (o.Model == "" || o.Model == m.Model)
	if same || m.Role != event.Assistant {
		return m.Parts
	}
	parts := make([]event.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if !signed(&p) {
			parts = append(parts, p)
		}
	}
	return parts
}

// signed reports whether only the model that made a part can read it.
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
