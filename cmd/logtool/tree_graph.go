package main

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/fork"
)

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
