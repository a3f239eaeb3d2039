package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// BranchList are the ends of the branches inside a session: of the tree that
// its rewinds made.
type BranchList struct {
	// Tip is the newest event of the active path that counts on it; snapshots and
	// events of session scope do not.
	Tip int64 `json:"tip"`
	// Orphaned are the tips of the other branches, in the order they were left.
	Orphaned []Branch `json:"orphaned,omitzero"`

	// Moves are the head_moved events of the lineage.
	Moves []Move `json:"moves,omitzero"`
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

// Move is where a head_moved went.
type Move struct {
	Seq int64 `json:"seq"`
	To  int64 `json:"to"`
	// From is the tip that it left.
	From int64 `json:"from,omitzero"`
}

// Branches are the active tip of a session and the tips that rewinds left:
// which branch is chosen, and how many others there are.
var Branches = Projection[BranchList]{
	Name: "branches", Version: 1, Scope: eventlog.SessionScope, Apply: (*BranchList).apply, Digest: noDigest[BranchList],
	Decode: decodeBranches,
}

func (b *BranchList) apply(e *eventlog.Event) error {
	switch {
	case e.Type.Name() == eventlog.HeadMoved:
		m, _, err := e.HeadMove()
		if err == nil {
			b.move(e.Seq, &m)
		}
		return err
	case e.Type.Name() == eventlog.SessionForked:
		for i := range b.Orphaned {
			b.Orphaned[i].Inherited = true
		}
	case e.Type.Scope() == eventlog.PathScope && !isUpkeep(e) && !strings.HasPrefix(string(e.Type), "copy:"):
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
	return b, nil
}

// move leaves the tip for another event.
func (b *BranchList) move(seq int64, m *eventlog.HeadMove) {
	for n := len(b.Moves); n > 0 && b.Moves[n-1].Seq >= seq; n-- {
		b.Moves = b.Moves[:n-1] // of a snapshot that knew what was to come
	}
	path := b.pathTo(m.To)
	if b.Tip > 0 && !b.Inner && !onStretches(path, b.Tip) {
		b.Orphaned = append(b.Orphaned, Branch{Tip: b.Tip, Left: seq, To: m.To, Label: m.Label, Reason: m.Reason})
	}
	b.Moves = append(b.Moves, Move{Seq: seq, To: m.To, From: b.Tip})
	tip := b.tipAt(m.To)
	b.Tip, b.Inner = tip, b.Inner || tip != b.Tip
	b.Orphaned = slices.DeleteFunc(b.Orphaned, func(o Branch) bool {
		if !onStretches(path, o.Tip) {
			return false
		}
		b.Tip, b.Inner = o.Tip, false // the path goes on from it
		return true
	})
}

// tipAt is the tip of the path that ends with seq, as far as the moves tell:
// events that do not count on the path are only known behind the last that does.
func (b *BranchList) tipAt(seq int64) int64 {
	n, moved := b.find(seq)
	for ; moved; n, moved = b.find(seq) {
		seq = b.Moves[n].To
	}
	return min(seq, b.Moves[n].From)
}

// find is the place among the moves of the one at seq, or of the next one.
func (b *BranchList) find(seq int64) (n int, is bool) {
	return slices.BinarySearchFunc(b.Moves, seq, func(m Move, seq int64) int { return cmp.Compare(m.Seq, seq) })
}

// pathTo are the stretches of the path that ends with seq, newest first.
func (b *BranchList) pathTo(seq int64) (path []eventlog.Stretch) {
	for seq > 0 {
		n, at := b.find(seq)
		if at {
			n++
		}
		if n == 0 {
			return append(path, eventlog.Stretch{From: 1, To: seq})
		}
		path = append(path, eventlog.Stretch{From: b.Moves[n-1].Seq, To: seq})
		seq = b.Moves[n-1].To
	}
	return path
}

// onStretches reports whether seq is on a path, whose stretches come newest
// first.
func onStretches(path []eventlog.Stretch, seq int64) bool {
	i, _ := slices.BinarySearchFunc(path, seq, func(s eventlog.Stretch, seq int64) int {
		switch {
		case s.From > seq:
			return -1
		case s.To < seq:
			return 1
		}
		return 0
	})
	return i < len(path) && path[i].From <= seq && seq <= path[i].To
}
