package main

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/fork"
)

// draw draws the trees with lines.
func (g *drawing) draw(p *printer) {
	for _, t := range g.roots {
		g.twig(p, t, "", "")
	}
	if len(g.roots) == 0 && p.terminal {
		p.printf("no sessions\n")
	}
}

// twig draws a twig behind its connector, and what hangs below it behind in.
func (g *drawing) twig(p *printer, t *treeNode, connector, in string) {
	p.printf("%s%s\n", p.paint(dim, connector), g.line(p, t))
	for i, d := range t.down {
		next, more := "├─", "│  "
		if i == len(t.down)-1 {
			next, more = "└─", "   "
		}
		if d.branch != nil {
			next = strings.Replace(next, "─", "╌", 1)
		}
		g.twig(p, d, in+next+" ", in+more)
	}
}

// line says what a twig is.
func (g *drawing) line(p *printer, t *treeNode) string {
	if t.branch != nil {
		return fmt.Sprintf("%s %s%s", p.paint(dim, at(t.at)), p.paint(yellow, "orphaned "+t.seqs()),
			p.paint(dim, fmt.Sprintf("  left by the rewind %s%s", at(t.branch.Left), called(t.branch.Label, t.branch.Reason))))
	}
	var words []string
	if t.node.Up != nil && (t.at > 0 || t.node.Kind == fork.KindFork) {
		words = append(words, p.paint(dim, at(t.at)))
	}
	name := clean(t.node.ID)
	if t.node.ID == g.marked {
		name = p.paint(bold, name) + " ◄"
	}
	words = append(words, name)
	return strings.Join(words, " ") + "  " + p.paint(dim, t.about())
}

// about is what is known of a session besides its name.
func (t *treeNode) about() string {
	var words []string
	if how := t.how(); how != "" {
		words = append(words, how+called(t.node.Label, t.node.Reason)+t.from())
	}
	switch {
	case t.node.Info.Err != nil:
		return strings.Join(append(words, "unreadable: "+brief(t.node.Info.Err.Error(), 120)), " · ")
	case t.err != nil:
		words = append(words, "unreadable: "+brief(t.err.Error(), 120))
	}
	events := count(t.events(), "event")
	if t.orphaned > 0 {
		events += ", " + thousands(t.orphaned) + " orphaned"
	}
	words = append(words, events)
	if t.row.Title != "" {
		words = append(words, t.row.Title)
	} else if t.node.Kind != fork.KindFork && t.row.about != "" {
		words = append(words, t.row.about)
	}
	return strings.Join(words, " · ")
}

// from says where a session at a root comes from, and what a copy lacks.
func (t *treeNode) from() (text string) {
	if t.node.Up == nil {
		text = " of " + clean(t.node.Parent)
		if t.at > 0 {
			text += " at " + at(t.at)
		}
		if t.node.Missing {
			text += ", which is missing"
		}
	}
	if t.node.Partial {
		text += ", unfinished: remove it"
	}
	return text
}
