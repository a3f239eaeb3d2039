package answers

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/listing"
)

// TreeSession is a session in a tree.
type TreeSession struct {
	Session  string   `json:"session"`
	Depth    int      `json:"depth"`
	Kind     string   `json:"kind"`
	Parent   string   `json:"parent,omitzero"`
	At       int64    `json:"at,omitzero"`
	Label    string   `json:"label,omitzero"`
	Reason   string   `json:"reason,omitzero"`
	Events   int64    `json:"events"`
	Head     int64    `json:"head"`
	Title    string   `json:"title,omitzero"`
	Missing  bool     `json:"missing,omitzero"`
	Partial  bool     `json:"partial,omitzero"`
	Error    string   `json:"error,omitzero"`
	Branches []branch `json:"branches,omitzero"`
}

// branch is an orphaned branch.
type branch struct {
	Base     int64      `json:"base"`
	Tip      int64      `json:"tip"`
	Seqs     [][2]int64 `json:"seqs"`
	Orphaned int64      `json:"orphaned"`
	Left     int64      `json:"left"`
	Label    string     `json:"label,omitzero"`
	Reason   string     `json:"reason,omitzero"`
}

// Tree calls use with each session of a tree, parents first.
func Tree(t *listing.TreeNode, use func(TreeSession) error) error { return tree(t, 0, use) }

func tree(t *listing.TreeNode, depth int, use func(TreeSession) error) error {
	n := t.Node
	row := TreeSession{Session: n.ID, Depth: depth, Kind: n.Kind, Parent: n.Parent, At: n.Seq, Label: n.Label, Reason: n.Reason,
		Events: n.Events(), Head: n.Last.Seq, Title: t.Title, Missing: n.Missing, Partial: n.Partial}
	if n.Err != nil {
		row.Error = n.Err.Error()
	}
	if t.Err != nil {
		row.Error = t.Err.Error()
	}
	below := t.Sessions(func(b *fork.Branch) {
		row.Branches = append(row.Branches, branch{Base: b.Base, Tip: b.Tip, Seqs: pairs(b.Own), Orphaned: b.Counted,
			Left: b.Left, Label: b.Label, Reason: b.Reason})
	})
	if err := use(row); err != nil {
		return err
	}
	for _, d := range below {
		if err := tree(d, depth+1, use); err != nil {
			return err
		}
	}
	return nil
}

// pairs are stretches in the form [from, to].
func pairs(stretches []event.Stretch) [][2]int64 {
	out := [][2]int64{}
	for _, s := range stretches {
		out = append(out, [2]int64{s.From, s.To})
	}
	return out
}
