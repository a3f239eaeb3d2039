package claude

import (
	"slices"
	"sort"
)

// tree places the lines of a session on the paths of its log.
//
// Lines name their parent, but several children seldom mean that a conversation
// was taken up again from an earlier point: parallel calls, progress notes and
// attachments fan out too. A branch is only where a mark — a prompt, or the
// first line of an assistant message — has a parent that another mark already
// follows on the path. Everything is decided when a line arrives, from the lines
// before it, so that a file that grows is imported as if it had been whole.
type tree struct {
	// nodes are the lines by uuid. An annotation stands for the line of
	// conversation it hangs on.
	nodes map[string]*node
	// heirs are what is followed instead of retracted lines.
	replacements map[*node]*node
	// groups are the assistant messages seen.
	groups map[string]bool
	// last is the newest line of conversation; nil before the first.
	last     *node
	segments []segment
}

// node is a line of conversation. The root, before the first line, has seq 0.
type node struct {
	seq        int64
	parent     *node
	mark       bool
	nonMessage bool
}

var root = &node{}

// segment is a stretch of events that follow each other; each but the first
// begins with a head_moved. The last one is active.
type segment struct {
	from, to int64 // seqs of its first and last event
	parent   int64 // what the head moved to, in an earlier segment
	nodes    []*node
}

func newTree() *tree {
	return &tree{
		nodes: map[string]*node{}, replacements: map[*node]*node{}, groups: map[string]bool{}, segments: []segment{{from: 1}},
	}
}

// line is what the tree needs to know of a record that has a uuid, or retracts
// other lines.
type line struct {
	uuid, parent string
	kind         kind
	group        string // of an assistant line
	// retracts are lines that this one replaces.
	retracts []string
	// silent: the event is no message.
	nonMessage bool
	// tail is, for a compaction, the last of the lines that it kept: what
	// follows it follows the compaction.
	tail string
}

type kind int

const (
	annotation kind = iota
	promptLine
	assistantLine // a line of an assistant message
	toolLine      // tool results, and text that came with a tool
	boundaryLine  // a compaction
)

// move says where the head must be before l is appended: at seq to, if ok.
func (t *tree) move(l line) (to int64, ok bool) {
	if to, ok := t.retract(l.retracts); ok {
		return to, true
	}
	if l.kind == annotation {
		return 0, false
	}
	p := t.resolve(l.parent)
	s := t.newestWith(p.seq)
	if t.isMark(l) && l.kind != boundaryLine {
		if next := t.markAfter(s, p.seq); next > 0 {
			return t.headBefore(next), true
		}
	}
	if s == len(t.segments)-1 {
		return 0, false
	}
	return t.headAt(s), true
}

// add takes in that l was appended at seq.
func (t *tree) add(l line, seq int64) {
	t.extend(seq)
	t.skipRetracted(l.retracts)
	if l.kind == annotation {
		if l.uuid != "" {
			t.nodes[l.uuid] = t.resolve(l.parent)
		}
		return
	}
	n := &node{seq: seq, parent: t.resolve(l.parent), mark: t.isMark(l), nonMessage: l.nonMessage}
	if l.group != "" {
		t.groups[l.group] = true
	}
	if l.uuid != "" {
		t.nodes[l.uuid] = n
	}
	if l.tail != "" {
		t.nodes[l.tail] = n
	}
	t.last = n
	s := &t.segments[len(t.segments)-1]
	s.nodes = append(s.nodes, n)
}

// moved takes in that the head was moved to an earlier seq, by the event at seq.
func (t *tree) moved(seq, to int64) {
	t.extend(seq - 1)
	t.segments = append(t.segments, segment{from: seq, to: seq, parent: to})
}

// grow takes in that the log has grown to seq.
func (t *tree) extend(seq int64) {
	s := &t.segments[len(t.segments)-1]
	s.to = max(s.to, seq)
}

// known reports whether a line with this uuid was seen.
func (t *tree) known(uuid string) bool { return uuid != "" && t.nodes[uuid] != nil }

// resolve finds the line of conversation that a parent stands for. A line
// whose parent is missing follows the line before it.
func (t *tree) resolve(uuid string) *node {
	n := t.nodes[uuid]
	if n == nil || uuid == "" {
		n = t.last
	}
	for n != nil && t.replacements[n] != nil {
		n = t.replacements[n]
	}
	if n == nil {
		return root
	}
	return n
}

// marks reports whether l begins something: a line that was seen before does
// not, nor does a further piece of a message.
func (t *tree) isMark(l line) bool {
	switch l.kind {
	case promptLine:
		return !t.known(l.uuid)
	case assistantLine:
		return !t.known(l.uuid) && (l.group == "" || !t.groups[l.group])
	default:
		return l.kind == boundaryLine
	}
}

// segmentOf is the segment that holds seq.
func (t *tree) segmentOf(seq int64) int {
	i := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].from > seq })
	return max(i-1, 0)
}

// path yields the segments from s back to the start, and up to which seq each
// is on the path.
func (t *tree) path(s int) func(yield func(i int, upTo int64) bool) {
	return func(yield func(int, int64) bool) {
		upTo := t.segments[s].to
		for yield(s, upTo) && s > 0 {
			upTo = t.segments[s].parent
			s = t.segmentOf(upTo)
		}
	}
}

// newestWith is the newest segment on whose path seq is.
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

// markAfter is the seq of the first mark after seq on the path of segment s, or 0.
func (t *tree) markAfter(s int, seq int64) int64 {
	first := int64(0)
	for i, upTo := range t.path(s) {
		nodes := t.segments[i].nodes
		from := sort.Search(len(nodes), func(k int) bool { return nodes[k].seq > seq })
		for _, n := range nodes[from:] {
			if n.mark && n.seq <= upTo {
				first = n.seq
				break
			}
		}
		if t.segments[i].from <= seq {
			break
		}
	}
	return first
}

// since are the messages on the path from seq on.
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

// before is where the head must be so that the event at seq is not on the path,
// and nothing before it is lost.
func (t *tree) headBefore(seq int64) int64 {
	if s := t.segmentOf(seq); t.segments[s].from == seq-1 && s > 0 {
		return t.segments[s].parent
	}
	return seq - 1
}

// tip is where the head must be to continue segment s.
func (t *tree) headAt(s int) int64 {
	if t.segments[s].to == t.segments[s].from && s > 0 {
		return t.segments[s].parent
	}
	return t.segments[s].to
}

// retract says where the head must be so that the lines are not on the path.
// Lines that others follow stay.
func (t *tree) retract(uuids []string) (to int64, ok bool) {
	if len(uuids) == 0 {
		return 0, false
	}
	gone := t.nodesOf(uuids)
	first := int64(0)
	for i, upTo := range t.path(len(t.segments) - 1) {
		nodes := t.segments[i].nodes
		for k := len(nodes) - 1; k >= 0; k-- {
			switch {
			case nodes[k].seq > upTo:
			case slices.Contains(gone, nodes[k]):
				first = nodes[k].seq
			default:
				return t.headBefore(first), first > 0
			}
		}
	}
	return t.headBefore(first), first > 0
}

// forget makes lines that follow retracted ones follow what was before these.
// Retracted lines that are still on the path stay.
func (t *tree) skipRetracted(uuids []string) {
	for _, n := range t.nodesOf(uuids) {
		if t.newestWith(n.seq) < len(t.segments)-1 {
			t.replacements[n] = n.parent
		}
	}
}

func (t *tree) nodesOf(uuids []string) (nodes []*node) {
	for _, uuid := range uuids {
		if n := t.nodes[uuid]; n != nil && n != root {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
