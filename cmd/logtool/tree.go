package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/runlog/stats"
)

// treeFormats are the values of tree's --format.
var treeFormats = []string{"text", "dot", "mermaid", "json"}

func (a *app) treeCommand() *cobra.Command {
	var format string
	var long, all bool
	cmd := a.command(&cobra.Command{
		Use:   "tree [SESSION]",
		Short: "Draw the descent of sessions, and the branches rewinds orphaned",
		Long: `Draw the sessions of the store. The forks, the copies and the sub-agent runs of a
session are drawn below it, at the events that they come from. With SESSION, only
its tree is drawn, with the branches that rewinds orphaned. --long draws these
branches for the whole store, and reads every session.

--format dot is for Graphviz, --format mermaid for Markdown.`,
		Example: "  logtool tree --long --format dot | dot -Tsvg > tree.svg",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(treeFormats, format) {
				return usagef("--format is text, dot, mermaid or json, not %q", format)
			}
			if a.json && cmd.Flags().Changed("format") && format != "json" {
				return usagef("--json is --format json: leave out one of --json and --format %s", format)
			}
			if a.json {
				format = "json"
			}
			return a.reading(func(log *eventlog.Log) error { return a.tree(cmd.Context(), log, args, long, all, format) })
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	cmd.Flags().StringVar(&format, "format", "text", "text, dot, mermaid or json")
	completeFlag(cmd, "format", treeFormats...)
	stateFlag(cmd, &all)
	cmd.Flags().BoolVarP(&long, "long", "l", false, "draw the orphaned branches of every session")
	return cmd
}

func (a *app) tree(ctx context.Context, log *eventlog.Log, args []string, long, all bool, format string) error {
	catalog := a.catalog(log, anySummary())
	names := map[string]string{}
	sessions := func(yield func(eventlog.SessionInfo, error) bool) {
		for s, err := range catalog.Sessions(ctx, false) {
			if s.Named && len(args) == 0 && !long {
				names[s.ID] = s.Name
			}
			if !yield(s.SessionInfo, err) {
				return
			}
		}
	}
	forest, err := fork.Tree(ctx, log, a.bounded(sessions))
	if err != nil {
		return err
	}
	g := drawing{app: a, log: log, catalog: catalog, names: names, printer: a.printer()}
	if g.Terminal {
		for _, n := range forest.All() {
			g.ids = append(g.ids, n.ID)
		}
		slices.Sort(g.ids)
	}
	roots := forest.Roots
	if !all {
		roots = slices.DeleteFunc(slices.Clone(roots), func(n *fork.Node) bool { return n.State })
	}
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
	if g.branches = long; long {
		defer catalog.Flush(ctx)
		if len(args) == 0 {
			a.progress.ReadsAll()
		}
	}
	return cmp.Or(g.trees(ctx, roots, format), g.Flush())
}

// drawing draws trees.
type drawing struct {
	app     *app
	log     *eventlog.Log
	catalog *stats.Catalog
	names   map[string]string // of sessions, that the catalog has
	*printer
	branches bool // draw the branches

	ids    []string // of all sessions of the store, sorted; empty without a terminal
	marked string   // the session that the user named
}

// treeNode is a session in a tree, or an orphaned branch of a session.
type treeNode = listing.TreeNode

// treeFormat prints trees one by one.
type treeFormat struct {
	begin, end func()
	tree       func(*treeNode) error
}

// treeBatch is the number of sessions that are described together: the catalog has the rows of a
// batch in all of its files.
const treeBatch = 64 * listing.Batch

// trees reads and prints some trees at a time, so that it needs no memory for all.
func (g *drawing) trees(ctx context.Context, roots []*fork.Node, format string) error {
	f := g.format(format)
	sessions := 0
	for _, n := range roots {
		for range n.Walk() {
			sessions++
		}
	}
	reader := listing.TreeReader{Log: g.log, Catalog: g.catalog, Branches: g.branches, Names: g.names, Step: g.app.steps(sessions)}
	defer g.app.progress.Say(nil)
	f.begin()
	for len(roots) > 0 {
		var batch []*fork.Node
		trees := 0
		for trees < len(roots) && len(batch) < treeBatch {
			for _, n := range roots[trees].Walk() {
				batch = append(batch, n)
			}
			trees++
		}
		about, err := reader.Describe(ctx, batch)
		if err != nil {
			return err
		}
		for _, n := range roots[:trees] {
			if err := f.tree(listing.NewTreeNode(n, about)); err != nil {
				return err
			}
		}
		clear(roots[:trees]) // printed trees need no memory
		roots = roots[trees:]
	}
	f.end()
	return nil
}

// seqsOf are the seqs of a branch: #5–#8, #12.
func seqsOf(t *treeNode) string {
	var words []string
	for _, s := range t.Branch.Own {
		words = append(words, seqsFrom(s.From, s.To))
	}
	return strings.Join(words, ", ")
}

// seqsFrom names a range of events: #5–#8.
func seqsFrom(from, to int64) string {
	if to <= from {
		return at(from)
	}
	return at(from) + "–" + at(to)
}

// quoted is the label of a branch in quotes, and the reason for it in parentheses.
func quoted(label, reason string) (text string) {
	if label != "" {
		text = fmt.Sprintf(" %q", clean(label))
	}
	if reason != "" {
		text += " (" + brief(reason, 60) + ")"
	}
	return text
}

// format is the format of a name.
func (g *drawing) format(name string) treeFormat {
	nothing := func() {}
	switch name {
	case "json":
		return treeFormat{nothing, nothing, func(t *treeNode) error {
			return answers.Tree(t, func(row answers.TreeSession) error { return g.Value(row) })
		}}
	case "dot":
		return g.dot()
	case "mermaid":
		return g.mermaid()
	}
	drawn := false
	end := func() {
		if !drawn && g.Terminal {
			g.Printf("no sessions\n")
		}
	}
	return treeFormat{nothing, end, func(t *treeNode) error {
		drawn = true
		g.node(g.printer, t, "", "")
		return nil
	}}
}

// node draws a node after its connector. The lines of its children begin with in.
func (g *drawing) node(p *printer, t *treeNode, connector, in string) {
	head, about := g.line(p, t)
	if p.Width > 0 {
		about = brief(about, max(term.LeastColumn, p.Width-columns(connector)-term.Visible(head)-2))
	}
	p.Printf("%s%s  %s\n", p.Paint(term.Dim, connector), head, p.Paint(term.Dim, about))
	for i, d := range t.Children {
		next, more := "├─", "│  "
		if i == len(t.Children)-1 {
			next, more = "└─", "   "
		}
		if d.Branch != nil {
			next = strings.Replace(next, "─", "╌", 1)
		}
		g.node(p, d, in+next+" ", in+more)
	}
}

// line names a node and describes it. On a terminal, ids are short.
func (g *drawing) line(p *printer, t *treeNode) (head, about string) {
	if b := t.Branch; b != nil {
		return p.Paint(term.Dim, at(t.At)) + " " + p.Paint(term.Yellow, "orphaned "+seqsOf(t)),
			fmt.Sprintf("left by the rewind %s%s", at(b.Left), quoted(b.Label, b.Reason))
	}
	id := t.Node.ID
	if p.Terminal {
		id = abbreviate(id, g.ids)
	}
	head = clean(id)
	if t.Node.ID == g.marked {
		head = p.Paint(term.Bold, head) + " ◄"
	}
	if t.Node.Up != nil && (t.At > 0 || t.Node.Kind == fork.KindFork) {
		head = p.Paint(term.Dim, at(t.At)) + " " + head
	}
	return head, summaryOf(t)
}

// summaryOf describes a session: its origin, its events and its title.
func summaryOf(t *treeNode) string {
	var words []string
	if t.Node.ChildID != "" {
		words = append(words, "run")
	}
	if t.Node.Kind != fork.KindRoot {
		words = append(words, string(t.Node.Kind)+quoted(t.Node.Label, t.Node.Reason)+parentOf(t))
	}
	switch {
	case t.Node.Err != nil:
		return strings.Join(append(words, "unreadable: "+brief(t.Node.Err.Error(), 120)), " · ")
	case t.Err != nil:
		words = append(words, "unreadable: "+brief(t.Err.Error(), 120))
	}
	events := count(t.Node.Events(), "event")
	if t.Orphaned > 0 {
		events += ", " + thousands(t.Orphaned) + " orphaned"
	}
	words = append(words, events)
	if t.Title != "" {
		words = append(words, brief(t.Title, titleColumns))
	} else if text := brief(t.About, 60); text != "" {
		words = append(words, "("+text+")")
	}
	return strings.Join(words, " · ")
}

// parentOf names the parent of a root, and marks an unfinished copy.
func parentOf(t *treeNode) (text string) {
	if t.Node.Up == nil {
		text = " of " + clean(t.Node.Parent)
		if t.At > 0 {
			text += " at " + at(t.At)
		}
		if t.Node.Missing {
			text += ", which is missing"
		}
	}
	if t.Node.Partial {
		text += ", unfinished: remove it"
	}
	return text
}
