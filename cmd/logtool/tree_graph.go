package main

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/fork"
)

// treeRow is a session with --format json.
type treeRow struct {
	Session  string      `json:"session"`
	Depth    int         `json:"depth"`
	Kind     string      `json:"kind"`
	Parent   string      `json:"parent,omitzero"`
	At       int64       `json:"at,omitzero"`
	Label    string      `json:"label,omitzero"`
	Reason   string      `json:"reason,omitzero"`
	Events   int64       `json:"events"`
	Head     int64       `json:"head"`
	Title    string      `json:"title,omitzero"`
	Missing  bool        `json:"missing,omitzero"`
	Partial  bool        `json:"partial,omitzero"`
	Error    string      `json:"error,omitzero"`
	Branches []branchRow `json:"branches,omitzero"`
}

// branchRow is an orphaned branch with --format json.
type branchRow struct {
	Base     int64      `json:"base"`
	Tip      int64      `json:"tip"`
	Seqs     [][2]int64 `json:"seqs"`
	Orphaned int64      `json:"orphaned"`
	Left     int64      `json:"left"`
	Label    string     `json:"label,omitzero"`
	Reason   string     `json:"reason,omitzero"`
}

func treeJSON(p *printer, t *treeNode, depth int) error {
	n := t.Node
	row := treeRow{Session: n.ID, Depth: depth, Kind: n.Kind, Parent: n.Parent, At: n.Seq, Label: n.Label, Reason: n.Reason,
		Events: n.Events(), Head: n.Last.Seq, Title: t.Title, Missing: n.Missing, Partial: n.Partial}
	if n.Err != nil {
		row.Error = n.Err.Error()
	}
	if t.Err != nil {
		row.Error = t.Err.Error()
	}
	below := sessionsOf(t, func(b *fork.Branch) {
		row.Branches = append(row.Branches, branchRow{Base: b.Base, Tip: b.Tip, Seqs: pairs(b.Own), Orphaned: b.Counted,
			Left: b.Left, Label: b.Label, Reason: b.Reason})
	})
	if err := p.Value(row); err != nil {
		return err
	}
	for _, d := range below {
		if err := treeJSON(p, d, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// sessionsOf are the child sessions of t and of its branches. It calls branch for each
// branch.
func sessionsOf(t *treeNode, branch func(*fork.Branch)) (below []*treeNode) {
	for _, d := range t.Children {
		if d.Branch == nil {
			below = append(below, d)
			continue
		}
		branch(d.Branch)
		below = append(below, sessionsOf(d, branch)...)
	}
	return below
}

// graph writes a tree as nodes and edges.
type graph struct {
	next int
	node func(id int, t *treeNode, label string)
	edge func(from, to int, t *treeNode, label string)
}

func (x *graph) add(t *treeNode) int {
	id := x.next
	x.next++
	x.node(id, t, labelOf(t))
	for _, d := range t.Children {
		below := x.add(d)
		label := at(d.At)
		if d.Branch == nil && d.Node.Kind != fork.KindRoot {
			label = strings.TrimSpace(label + " " + string(d.Node.Kind) + " " + d.Node.Label)
		}
		x.edge(id, below, d, clean(label))
	}
	return id
}

// draw adds a tree.
func (x *graph) draw(t *treeNode) error {
	x.add(t)
	return nil
}

// labelOf is the text of a node.
func labelOf(t *treeNode) string {
	if t.Branch != nil {
		return "orphaned " + seqsOf(t) + "\n" + clean(strings.TrimSpace(t.Branch.Label+" "+t.Branch.Reason))
	}
	return clean(t.Node.ID) + "\n" + count(t.Node.Events(), "event")
}

func (g *drawing) dot() treeFormat {
	p := g.printer
	quote := func(text string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.TrimSpace(text))
	}
	style := func(t *treeNode, marked string) string {
		switch {
		case t.Branch != nil:
			return ", style=dashed"
		case t.Node.ID == marked:
			return ", style=bold"
		}
		return ""
	}
	x := graph{
		node: func(id int, t *treeNode, label string) {
			p.Printf("  n%d [label=\"%s\"%s];\n", id, quote(label), style(t, g.marked))
		},
		edge: func(from, to int, t *treeNode, label string) {
			p.Printf("  n%d -> n%d [label=\"%s\"%s];\n", from, to, quote(label), style(t, ""))
		},
	}
	begin := func() {
		p.Printf("digraph sessions {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n")
	}
	return treeFormat{begin, func() { p.Printf("}\n") }, x.draw}
}

func (g *drawing) mermaid() treeFormat {
	p := g.printer
	quote := func(text string) string {
		text = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(strings.TrimSpace(text))
		return `"` + strings.ReplaceAll(text, "\n", "<br/>") + `"`
	}
	var orphaned []string
	x := graph{
		node: func(id int, t *treeNode, label string) {
			p.Printf("  n%d[%s]\n", id, quote(label))
			if t.Branch != nil {
				orphaned = append(orphaned, fmt.Sprintf("n%d", id))
			}
		},
		edge: func(from, to int, t *treeNode, label string) {
			arrow := "-->"
			if t.Branch != nil {
				arrow = "-.->"
			}
			p.Printf("  n%d %s|%s| n%d\n", from, arrow, quote(label), to)
		},
	}
	end := func() {
		if len(orphaned) > 0 {
			p.Printf("  classDef orphaned stroke-dasharray: 5 5\n  class %s orphaned\n", strings.Join(orphaned, ","))
		}
	}
	return treeFormat{func() { p.Printf("flowchart LR\n") }, end, x.draw}
}
