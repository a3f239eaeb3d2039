package event

import (
	"cmp"
	"fmt"
	"slices"
)

// The events of a lineage form a tree. The parent of event n is n−1, or, of a
// head_moved, the event it moved to. The active path is the chain of parents from
// the newest event back to the start (docs/FORMAT.md, chapter 3).

// Parent is the seq of e's parent in the tree; 0 is the start. A head_moved to an
// event that is not before it is ErrInvalidTree.
func (e *Event) Parent() (int64, error) {
	if e.Type.Name() != HeadMoved {
		return e.Seq - 1, nil
	}
	copied := *e // only the copy of a head_moved escapes to the heap
	m, _, err := Decode[HeadMove](&copied)
	if err != nil {
		return 0, err
	}
	if m.To < 0 || m.To >= e.Seq {
		return 0, fmt.Errorf("%s %d of %q: %w: %w: to is %d", e.Type, e.Seq, e.SessionID, ErrInvalidTree, errMoveTo, m.To)
	}
	return m.To, nil
}

// Stretch is a run of seqs, both ends included.
type Stretch struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Len is how many seqs the stretch has.
func (s Stretch) Len() int64 { return s.To - s.From + 1 }

// Path is a path through the tree: the seqs of its events as stretches, oldest
// first. Seqs between two stretches are not on the path.
type Path []Stretch

// Has reports whether an event is on the path.
func (p Path) Has(seq int64) bool {
	i, _ := slices.BinarySearchFunc(p, seq, func(s Stretch, seq int64) int { return cmp.Compare(s.To, seq) })
	return i < len(p) && p[i].From <= seq
}

// Len is how many events the path has.
func (p Path) Len() (n int64) {
	for _, s := range p {
		n += s.Len()
	}
	return n
}

// After is the part of the path with seqs above seq.
func (p Path) After(seq int64) (rest Path) {
	for _, s := range p {
		if s.To > seq {
			rest = append(rest, Stretch{max(s.From, seq+1), s.To})
		}
	}
	return rest
}

// maxSkipped is the largest gap in a path, in events, that one read passes over.
const maxSkipped = 256

// Near returns the number of stretches, from the first on, with small gaps between them.
// A reader of the path reads them, and the gaps, at once. Near of an empty path is 0.
func (p Path) Near() int {
	n := min(1, len(p))
	for n > 0 && n < len(p) && p[n].From-p[n-1].To-1 <= maxSkipped {
		n++
	}
	return n
}

// Move is a head_moved event: the path continues after event To.
type Move struct {
	Seq int64 `json:"seq"`
	To  int64 `json:"to"`
}

// Tree is the tree of one lineage: all that shapes it are its moves, in the order
// of their seqs. The zero Tree is a lineage that was never rewound.
type Tree []Move

// Add adds the next event of the lineage. Only a head_moved event changes the tree.
func (t *Tree) Add(e *Event) error {
	if e == nil {
		return nilArgument("the event of Tree.Add")
	}
	if e.Type.Name() != HeadMoved {
		return nil
	}
	to, err := e.Parent()
	if err == nil {
		*t = append(*t, Move{e.Seq, to})
	}
	return err
}

// Parent is the seq of an event's parent.
func (t Tree) Parent(seq int64) int64 {
	if i, ok := t.find(seq); ok {
		return t[i].To
	}
	return seq - 1
}

// Run is the longest stretch of the path to event seq that ends with it, and the
// parent of the stretch's first event.
func (t Tree) Run(seq int64) (s Stretch, parent int64) {
	i, ok := t.find(seq)
	if ok {
		i++
	}
	if i == 0 {
		return Stretch{1, seq}, 0
	}
	return Stretch{t[i-1].Seq, seq}, t[i-1].To
}

// Path is the path that ends with event seq; empty for 0.
func (t Tree) Path(seq int64) (p Path) {
	for seq > 0 {
		var s Stretch
		s, seq = t.Run(seq)
		p = append(p, s)
	}
	slices.Reverse(p)
	return p
}

// Leads reports whether the path that ends with event seq has event through on it.
// Every path comes from 0.
func (t Tree) Leads(seq, through int64) bool {
	for seq > through {
		s, parent := t.Run(seq)
		if s.From <= through {
			return true
		}
		seq = parent
	}
	return seq == through
}

// find is the index of the move at seq, or of the next one.
func (t Tree) find(seq int64) (i int, ok bool) {
	return slices.BinarySearchFunc(t, seq, func(m Move, seq int64) int { return cmp.Compare(m.Seq, seq) })
}
