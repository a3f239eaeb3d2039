package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func (a *app) treeCommand() *cobra.Command {
	var format string
	var long bool
	cmd := &cobra.Command{
		Use:   "tree [SESSION]",
		Short: "Draw how sessions descend from each other, and what was rewound in them",
		Long: `Draw the sessions of the store, below each its forks, its copies and the runs it
started, at the events they come from. For SESSION that is the tree it stands in,
with what rewinds left behind; for the whole store --long adds that, and reads
every session.

--format dot and mermaid are for Graphviz and Markdown.`,
		Example: `  logtool tree
  logtool tree order-42
  logtool tree --long --format dot | dot -Tsvg > tree.svg`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"text", "dot", "mermaid", "json"}, format) {
				return usagef("--format is text, dot, mermaid or json, not %q", format)
			}
			if a.json && cmd.Flags().Changed("format") && format != "json" {
				return usagef("--json is --format json: leave out one of --json and --format %s", format)
			}
			if a.json {
				format = "json"
			}
			return a.reading(func(log *eventlog.Log) error { return a.tree(cmd.Context(), log, args, long, format) })
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, dot, mermaid or json")
	cmd.Flags().BoolVarP(&long, "long", "l", false, "with what rewinds left behind in every session")
	return cmd
}

func (a *app) tree(ctx context.Context, log *eventlog.Log, args []string, long bool, format string) error {
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return err
	}
	var g drawing
	roots := forest.Roots
	if len(args) > 0 {
		if g.marked, err = resolve(ctx, log, args[0]); err != nil {
			return err
		}
		n := forest.Node(g.marked)
		for n.Up != nil {
			n = n.Up
		}
		roots, long = []*fork.Node{n}, true
	}
	for _, n := range roots {
		top, err := newTreeNode(ctx, log, n, long)
		if err != nil {
			return err
		}
		g.roots = append(g.roots, top)
	}
	if err := g.name(ctx, log); err != nil {
		return err
	}
	p := a.printer()
	switch format {
	case "json":
		err = g.json(p)
	case "dot":
		g.dot(p)
	case "mermaid":
		g.mermaid(p)
	default:
		g.draw(p)
	}
	if err != nil {
		return err
	}
	return p.flush()
}

// grove is trees to be drawn.
type drawing struct {
	roots  []*treeNode
	marked string // the session that was asked for
}

// name finds what the sessions are called.
func (g *drawing) name(ctx context.Context, log *eventlog.Log) error {
	var rows []*sessionRow
	var all func([]*treeNode)
	all = func(twigs []*treeNode) {
		for _, t := range twigs {
			if t.branch == nil {
				rows = append(rows, t.row)
			}
			all(t.down)
		}
	}
	all(g.roots)
	return readNames(ctx, log, rows)
}

// twig is a session of a tree, or a branch within one that a rewind left.
type treeNode struct {
	node   *fork.Node
	row    *sessionRow      // of a session
	branch *fork.Branch // nil for a session
	// at is the seq of the event that it parts from.
	at   int64
	down []*treeNode // ordered by at

	// Of a session whose branches were read: the events that are orphaned.
	read     bool
	orphaned int64
	err      error // why they could not be read
}

// newTwig makes a session's twig with all below it. With deep, what rewinds left
// stands there too, and what parts from that stands below it.
func newTreeNode(ctx context.Context, log *eventlog.Log, n *fork.Node, deep bool) (*treeNode, error) {
	t := &treeNode{node: n, row: newSessionRow(n.Info), at: n.Seq}
	var left []*treeNode
	if deep && n.Info.Err == nil && !n.Missing {
		branches, err := fork.Branches(ctx, log, n.ID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t.err, t.read = err, err == nil
		left = t.leave(branches)
	}
	for _, d := range n.Down {
		below, err := newTreeNode(ctx, log, d, deep)
		if err != nil {
			return nil, err
		}
		t.hang(below, left)
	}
	t.sort()
	return t, nil
}

// leave hangs the branches that the session's own rewinds left, each below the
// one it parts from. Those that an ancestor left are drawn there.
func (t *treeNode) leave(branches []fork.Branch) (left []*treeNode) {
	for i := range branches {
		b := &branches[i]
		if b.Active || t.node.Kind == fork.KindFork && b.Left <= t.node.Seq {
			continue
		}
		t.orphaned += b.Counted
		x := &treeNode{node: t.node, branch: b, at: b.Base}
		t.hang(x, left)
		left = append(left, x)
	}
	return left
}

// hang hangs x below the branch that has the event it parts from, or below t.
func (t *treeNode) hang(x *treeNode, left []*treeNode) {
	for _, b := range left {
		if b.branch.Orphaned(x.at) {
			b.down = append(b.down, x)
			return
		}
	}
	t.down = append(t.down, x)
}

func (t *treeNode) sort() {
	slices.SortStableFunc(t.down, func(a, b *treeNode) int { return cmp.Compare(a.at, b.at) })
	for _, d := range t.down {
		if d.branch != nil {
			d.sort()
		}
	}
}

// events is how many events the session has itself, or the branch alone.
func (t *treeNode) events() int64 {
	if t.branch == nil {
		return t.node.Info.Events()
	}
	return t.branch.Counted
}

// seqs are those of a branch's events: #5–#8, #12.
func (t *treeNode) seqs() (text string) {
	for i, s := range t.branch.Own {
		if i > 0 {
			text += ", "
		}
		text += at(s.From)
		if s.To > s.From {
			text += "–" + at(s.To)
		}
	}
	return text
}

// how says how a session comes from the one above it.
func (t *treeNode) how() string {
	switch t.node.Kind {
	case fork.KindFork:
		return "fork"
	case fork.KindCopy:
		return "copy"
	case fork.KindRun:
		return "run"
	}
	return ""
}

// called are the label and the reason in words.
func called(label, reason string) (text string) {
	if label != "" {
		text = fmt.Sprintf(" %q", clean(label))
	}
	if reason != "" {
		text += " (" + brief(reason, 60) + ")"
	}
	return text
}
