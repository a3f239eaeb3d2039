package claude

import (
	"cmp"
	"maps"
	"slices"

	"github.com/convlog/convlog/interop/internal/records"
)

// addWritten indexes the lines of the file that the log wrote, by their uuids: each follows the
// one before it. seqs are the seqs of their events. A line that follows an earlier line than
// the last begins a branch.
func (t *tree) addWritten(seqs map[string]int64) {
	uuids := slices.SortedFunc(maps.Keys(seqs), func(a, b string) int { return cmp.Compare(seqs[a], seqs[b]) })
	parent := root
	for _, uuid := range uuids {
		n := t.nodeAt(seqs[uuid])
		if n == nil {
			n = &node{seq: seqs[uuid], parent: parent, mark: true}
			t.insert(n)
		}
		t.nodes[records.IDOf(uuid)], parent = n, n
	}
	if t.last == nil && parent != root {
		t.last = parent
	}
}

// nodeAt is the node at seq; nil if there is none.
func (t *tree) nodeAt(seq int64) *node {
	nodes := t.segments[t.segmentOf(seq)].nodes
	if i, ok := slices.BinarySearchFunc(nodes, seq, bySeq); ok {
		return nodes[i]
	}
	return nil
}

// insert adds a node to its segment.
func (t *tree) insert(n *node) {
	s := &t.segments[t.segmentOf(n.seq)]
	i, _ := slices.BinarySearchFunc(s.nodes, n.seq, bySeq)
	s.nodes = slices.Insert(s.nodes, i, n)
}

func bySeq(n *node, seq int64) int { return cmp.Compare(n.seq, seq) }
