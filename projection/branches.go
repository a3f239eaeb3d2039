package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// BranchList are the ends of the branches inside a session: of the tree that
// its rewinds made.
type BranchList struct {
	// Tip is the newest event of the active path that counts on it; snapshots and
	// events of session scope do not.
	Tip int64 `json:"tip"`
	// Orphaned are the tips of the other branches, in the order they were left.
	Orphaned []Branch `json:"orphaned,omitzero"`

	// Moves are the head_moved events of the lineage, Tips the tip that each left.
	Moves event.Tree `json:"moves,omitzero"`
	Tips  []int64    `json:"tips,omitzero"`
	// Inner says that the tip lies inside another branch.
	Inner bool `json:"inner,omitzero"`
}

// Branch is a branch that was left behind.
type Branch struct {
	// Tip is the seq of its newest event.
	Tip int64 `json:"tip"`
	// Left is the seq of the head_moved that left it, Label and Reason what that
	// said, and To where it went on.
	Left   int64  `json:"left"`
	To     int64  `json:"to"`
	Label  string `json:"label,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Inherited says that the branch belongs to what a fork shares.
	Inherited bool `json:"inherited,omitzero"`
}

// Branches are the active tip of a session and the tips that rewinds left:
// which branch is chosen, and how many others there are.
func Branches() Projection[BranchList] {
	return Projection[BranchList]{
		builtin: true, Name: "branches", Version: 1, Scope: event.SessionScope, Apply: (*BranchList).apply, Digest: noDigest[BranchList],
		Decode: decodeBranches,
	}
}

func (b *BranchList) apply(e *event.Event) error {
	switch {
	case e.Type.Name() == event.HeadMoved:
		m, _, err := event.Decode[event.HeadMove](e)
		if err == nil {
			b.move(e.Seq, &m)
		}
		return err
	case e.Type.Name() == event.SessionForked:
		for i := range b.Orphaned {
			b.Orphaned[i].Inherited = true
		}
	case e.Type.Scope() == event.PathScope && !e.Type.Upkeep() && !strings.HasPrefix(string(e.Type), "copy:"):
		b.Tip, b.Inner = e.Seq, false
	}
	return nil
}

// decodeBranches takes no moves that lead in circles: who follows them would not
// come to an end.
func decodeBranches(body jsontext.Value) (b BranchList, err error) {
	if err := readState(body, &b); err != nil {
		return BranchList{}, err
	}
	last := int64(0)
	for _, m := range b.Moves {
		if m.Seq <= last || m.To < 0 || m.To >= m.Seq {
			return BranchList{}, fmt.Errorf("%w: a move from %d to %d behind one at %d", errBadState, m.Seq, m.To, last)
		}
		last = m.Seq
	}
	if len(b.Tips) != len(b.Moves) {
		return BranchList{}, fmt.Errorf("%w: %d tips of %d moves", errBadState, len(b.Tips), len(b.Moves))
	}
	return b, nil
}

// move leaves the tip for another event.
func (b *BranchList) move(seq int64, m *event.HeadMove) {
	for n := len(b.Moves); n > 0 && b.Moves[n-1].Seq >= seq; n-- {
		b.Moves, b.Tips = b.Moves[:n-1], b.Tips[:n-1] // of a snapshot that knew later moves
	}
	path := b.Moves.Path(m.To)
	if b.Tip > 0 && !b.Inner && !path.Has(b.Tip) {
		b.Orphaned = append(b.Orphaned, Branch{Tip: b.Tip, Left: seq, To: m.To, Label: m.Label, Reason: m.Reason})
	}
	b.Moves, b.Tips = append(b.Moves, event.Move{Seq: seq, To: m.To}), append(b.Tips, b.Tip)
	tip := b.tipAt(m.To)
	b.Tip, b.Inner = tip, b.Inner || tip != b.Tip
	b.Orphaned = slices.DeleteFunc(b.Orphaned, func(o Branch) bool {
		if !path.Has(o.Tip) {
			return false
		}
		b.Tip, b.Inner = o.Tip, false // the path goes on from it
		return true
	})
}

// tipAt is the tip of the path that ends with event seq, as far as the moves tell:
// which events behind a tip do not count is only known where a move left that tip.
func (b *BranchList) tipAt(seq int64) int64 {
	for {
		n, moved := slices.BinarySearchFunc(b.Moves, seq, func(m event.Move, seq int64) int { return cmp.Compare(m.Seq, seq) })
		if !moved {
			return min(seq, b.Tips[n])
		}
		seq = b.Moves[n].To
	}
}
