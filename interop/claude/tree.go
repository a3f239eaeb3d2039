package claude

import (
	"slices"
	"sort"

	"github.com/convlog/convlog/interop/internal/records"
)

// tree places the lines of a session on the paths of its log.
//
// Each line names its parent. A parent with several children is rarely a branch:
// parallel calls, progress notes and attachments share a parent too. A mark is a prompt
// or the first line of an assistant message. A line begins a branch only if it is a
// mark, and another mark already follows its parent on the path. The tree decides this
// when the line arrives, from earlier lines only. So a file that grows gives the same
// events as the whole file.
//
// Some versions write a line before its parent, for example a result before its call.
// The late parent begins no branch: it goes to the end of the path with its child.
type tree struct {
	// nodes are the messages and compactions by the uuid of the line. An annotation maps
	// to the node that it is attached to.
	nodes map[records.ID]*node
	// replacements map a retracted line to its replacement as a parent.
	replacements map[*node]*node
	// awaited are the nodes whose parent has not come yet, by the uuid of the parent.
	awaited map[string][]*node
	// groups are the ids of assistant messages so far.
	groups map[records.ID]bool
	// last is the newest node; nil before the first.
	last     *node
	segments []segment
}

// node is a line of conversation. The root comes before the first line and has seq 0.
type node struct {
	seq        int64
	parent     *node
	mark       bool
	nonMessage bool
	awaits     bool // its parent has not come yet
	unordered  bool // a result, or a line that came after a child of it
}

var root = &node{}

// segment is a run of consecutive events on one path. Each segment but the first begins
// with a head_moved. The last segment is active.
type segment struct {
	from, to int64 // seqs of the first and the last event
	parent   int64 // target of the head_moved, in an earlier segment
	nodes    []*node
}

func newTree() *tree {
	return &tree{
		nodes: map[records.ID]*node{}, replacements: map[*node]*node{}, awaited: map[string][]*node{}, groups: map[records.ID]bool{}, segments: []segment{{from: 1}},
	}
}

// line is a record, reduced to the members that the tree needs.
type line struct {
	uuid, parent string
	kind         kind
	group        string // id of the assistant message
	// retracts are the uuids of lines that this line replaces.
	retracts []string
	// nonMessage is true if the event is not a message.
	nonMessage bool
	// tail is the uuid of the last line that a compaction kept. A child of that line
	// follows the compaction.
	tail string
}

type kind int

const (
	annotation kind = iota
	promptLine
	assistantLine // a part of an assistant message
	toolLine      // tool results, or text that came with a tool
	boundaryLine  // a compaction
)

// move returns the seq that the head must move to before l is appended; ok is false if
// the head stays.
func (t *tree) move(l line) (to int64, ok bool) {
	if to, ok := t.retract(l.retracts); ok {
		return to, true
	}
	if l.kind == annotation {
		return 0, false
	}
	p := t.resolve(l.parent)
	if waiting := t.awaited[l.uuid]; len(waiting) > 0 {
		p = waiting[len(waiting)-1]
	}
	s := t.newestWith(p.seq)
	if t.isMark(l) && l.kind != boundaryLine {
		if next := t.markAfter(s, p); next > 0 {
			return t.headBefore(next), true
		}
	}
	if s == len(t.segments)-1 {
		return 0, false
	}
	return t.headAt(s), true
}

// leaf returns the seq that the head must move to so that the path ends with the line, which a
// last-prompt names; ok is false if the head stays: the line is missing, or no prompt and no
// answer follows it on the active path.
func (t *tree) leaf(uuid string) (to int64, ok bool) {
	n := t.node(uuid)
	if uuid == "" || n == nil {
		return 0, false
	}
	s := t.newestWith(n.seq)
	if next := t.markAfter(s, n); next > 0 {
		return t.headBefore(next), true
	}
	if s == len(t.segments)-1 {
		return 0, false
	}
	return t.headAt(s), true
}

// add indexes l, which was appended at seq.
func (t *tree) add(l line, seq int64) {
	t.extend(seq)
	t.skipRetracted(l.retracts)
	if l.kind == annotation {
		if l.uuid != "" {
			t.nodes[records.IDOf(l.uuid)] = t.resolve(l.parent)
		}
		return
	}
	n := &node{seq: seq, parent: t.resolve(l.parent), mark: t.isMark(l), nonMessage: l.nonMessage}
	n.unordered = l.kind == toolLine || len(t.awaited[l.uuid]) > 0
	if l.group != "" {
		t.groups[records.IDOf(l.group)] = true
	}
	if l.parent != "" && t.node(l.parent) == nil {
		t.awaited[l.parent], n.awaits = append(t.awaited[l.parent], n), true
	}
	if l.uuid != "" {
		t.nodes[records.IDOf(l.uuid)] = n
		n.adopt(t.awaited[l.uuid])
		delete(t.awaited, l.uuid)
	}
	if l.tail != "" {
		t.nodes[records.IDOf(l.tail)] = n
	}
	t.last = n
	s := &t.segments[len(t.segments)-1]
	s.nodes = append(s.nodes, n)
}

// adopt makes n the parent of the nodes that came before it. A line whose own parent has
// not come yet cannot follow its descendants.
func (n *node) adopt(children []*node) {
	for _, child := range children {
		if n.descends(child) {
			continue
		}
		if x := n.firstAwaiting(); x != nil && x.parent.follows(child) {
			x.parent = root
		}
		child.parent, child.awaits = n, false
	}
}

// firstAwaiting is the nearest line, from n back, whose parent has not come yet; nil if
// there is none.
func (n *node) firstAwaiting() *node {
	for ; n != nil; n = n.parent {
		if n.awaits {
			return n
		}
	}
	return nil
}

// follows reports whether n is the node or comes after it, also by lines that have not come.
func (n *node) follows(from *node) bool {
	for ; n != nil; n = n.parent {
		if n == from {
			return true
		}
	}
	return false
}

// descends reports whether n is the node or one of its descendants, by the lines that have
// come.
func (n *node) descends(from *node) bool {
	for ; n != nil; n = n.parent {
		if n == from || n.awaits {
			return n == from
		}
	}
	return false
}

// withhold indexes a withheld line, whose event at seq is redacted: its children follow it.
func (t *tree) withhold(uuid, parent string, seq int64) {
	if uuid != "" && t.node(uuid) == nil {
		t.nodes[records.IDOf(uuid)] = &node{seq: seq, parent: t.resolve(parent)}
	}
}

// moved indexes the head_moved at seq.
func (t *tree) moved(seq, to int64) {
	t.extend(seq - 1)
	t.segments = append(t.segments, segment{from: seq, to: seq, parent: to})
}

// extend sets the newest seq of the log.
func (t *tree) extend(seq int64) {
	s := &t.segments[len(t.segments)-1]
	s.to = max(s.to, seq)
}

// node is the node of a line; nil if the tree does not have the line.
func (t *tree) node(uuid string) *node { return t.nodes[records.IDOf(uuid)] }

// known reports whether the tree has a line with this uuid.
func (t *tree) known(uuid string) bool { return uuid != "" && t.node(uuid) != nil }

// resolve returns the node that a child of the line follows. If the line is missing, the
// child follows the newest node.
func (t *tree) resolve(uuid string) *node {
	n := t.node(uuid)
	if n == nil || uuid == "" {
		n = t.last
	}
	for range len(t.replacements) { // malformed parents could form a ring
		next := t.replacements[n]
		if next == nil {
			break
		}
		n = next
	}
	if n == nil {
		return root
	}
	return n
}

// isMark reports whether l is a mark: a prompt, the first line of an assistant message,
// or a compaction. A repeated line is not a mark.
func (t *tree) isMark(l line) bool {
	switch l.kind {
	case promptLine:
		return !t.known(l.uuid) && len(t.awaited[l.uuid]) == 0
	case assistantLine:
		return !t.known(l.uuid) && len(t.awaited[l.uuid]) == 0 && (l.group == "" || !t.groups[records.IDOf(l.group)])
	default:
		return l.kind == boundaryLine
	}
}

// segmentOf is the index of the segment that contains seq.
func (t *tree) segmentOf(seq int64) int {
	i := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].from > seq })
	return max(i-1, 0)
}

// path yields the segments from s back to the first, each with its last seq on the path.
func (t *tree) path(s int) func(yield func(i int, upTo int64) bool) {
	return func(yield func(int, int64) bool) {
		upTo := t.segments[s].to
		for yield(s, upTo) && s > 0 {
			upTo = t.segments[s].parent
			s = t.segmentOf(upTo)
		}
	}
}

// newestWith is the index of the newest segment whose path includes seq.
func (t *tree) newestWith(seq int64) int {
	home := t.segmentOf(seq)
	for s := len(t.segments) - 1; s > home; s-- {
		for i, upTo := range t.path(s) {
			if i == home && seq <= upTo {
				return s
			}
		}
	}
	return home
}

// floats reports whether a line between n and seq has not come yet.
func (n *node) floats(seq int64) bool {
	for ; n != nil && n.seq > seq; n = n.parent {
		if n.awaits {
			return true
		}
	}
	return false
}

// followsUnordered reports whether n is or follows a line that is not in order, and whose
// parent has not come yet.
func (n *node) followsUnordered() bool {
	for ; n != nil; n = n.parent {
		if n.awaits && n.unordered {
			return true
		}
	}
	return false
}

// markAfter is the seq of the first mark after p on the path of segment s, or 0. An
// ancestor of p that came late is no such mark. Neither is a line that can be an ancestor
// or a descendant of p by lines that have not come yet.
func (t *tree) markAfter(s int, p *node) int64 {
	first := int64(0)
	for i, upTo := range t.path(s) {
		nodes := t.segments[i].nodes
		from := sort.Search(len(nodes), func(k int) bool { return nodes[k].seq > p.seq })
		for _, n := range nodes[from:] {
			if n.mark && n.seq <= upTo && !p.descends(n) && !n.floats(p.seq) && !p.followsUnordered() {
				first = n.seq
				break
			}
		}
		if t.segments[i].from <= p.seq {
			break
		}
	}
	return first
}

// messagesSince returns the seqs of the messages on the active path, from seq on.
func (t *tree) messagesSince(seq int64) (seqs []int64) {
	for i, upTo := range t.path(len(t.segments) - 1) {
		nodes := t.segments[i].nodes
		for k := len(nodes) - 1; k >= 0; k-- {
			if n := nodes[k]; seq <= n.seq && n.seq <= upTo && !n.nonMessage {
				seqs = append(seqs, n.seq)
			}
		}
	}
	slices.Reverse(seqs)
	return seqs
}

// headBefore is the newest seq that the head can move to so that the event at seq is not
// on the path.
func (t *tree) headBefore(seq int64) int64 {
	if s := t.segmentOf(seq); t.segments[s].from == seq-1 && s > 0 {
		return t.segments[s].parent
	}
	return seq - 1
}

// headAt is the seq that the head moves to, to continue segment s.
func (t *tree) headAt(s int) int64 {
	if t.segments[s].to == t.segments[s].from && s > 0 {
		return t.segments[s].parent
	}
	return t.segments[s].to
}

// retract returns the seq that the head must move to, to take the lines off the path. A
// line that other lines follow stays.
func (t *tree) retract(uuids []string) (to int64, ok bool) {
	if len(uuids) == 0 {
		return 0, false
	}
	retracted := t.nodesOf(uuids)
	first := int64(0)
	for i, upTo := range t.path(len(t.segments) - 1) {
		nodes := t.segments[i].nodes
		for k := len(nodes) - 1; k >= 0; k-- {
			switch {
			case nodes[k].seq > upTo:
			case slices.Contains(retracted, nodes[k]):
				first = nodes[k].seq
			default:
				return t.headBefore(first), first > 0
			}
		}
	}
	return t.headBefore(first), first > 0
}

// skipRetracted replaces retracted lines as parents: their children follow the line
// before them. A retracted line that is still on the path stays.
func (t *tree) skipRetracted(uuids []string) {
	for _, n := range t.nodesOf(uuids) {
		if t.newestWith(n.seq) < len(t.segments)-1 {
			t.replacements[n] = n.parent
		}
	}
}

func (t *tree) nodesOf(uuids []string) (nodes []*node) {
	for _, uuid := range uuids {
		if n := t.node(uuid); n != nil && n != root {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
