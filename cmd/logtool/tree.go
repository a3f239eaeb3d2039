package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func (a *app) treeCommand() *cobra.Command {
	var format string
	var long bool
	cmd := &cobra.Command{
		Use:   "tree [SESSION]",
		Short: "Draw how sessions descend from each other, and the branches that rewinds orphaned",
		Long: `Draw the sessions of the store. The forks, the copies and the sub-agent runs of a
session are drawn below it, at the events that they come from. With SESSION, only
its tree is drawn, with the branches that rewinds orphaned. --long draws these
branches for the whole store, and reads every session.

--format dot is for Graphviz, --format mermaid for Markdown.`,
		Example: "  logtool tree --long --format dot | dot -Tsvg > tree.svg",
		Args:    between(0, 1),
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
	cmd.Flags().BoolVarP(&long, "long", "l", false, "draw the orphaned branches of every session")
	return cmd
}

func (a *app) tree(ctx context.Context, log *eventlog.Log, args []string, long bool, format string) error {
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return err
	}
	var g drawing
	for _, n := range forest.All() {
		g.ids = append(g.ids, n.ID)
	}
	slices.Sort(g.ids)
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
	if long && len(args) == 0 {
		a.progress.readsAll()
	}
	for _, n := range roots {
		top, err := newTreeNode(ctx, log, n, long)
		if err != nil {
			return err
		}
		g.roots = append(g.roots, top)
	}
	if err := g.name(ctx, log, a.progress); err != nil {
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

// drawing is the trees to draw.
type drawing struct {
	roots  []*treeNode
	ids    []string // of all sessions of the store, sorted
	marked string   // the session that the user named
}

// name finds the titles of the sessions.
func (g *drawing) name(ctx context.Context, log *eventlog.Log, p *progress) error {
	var all []*treeNode
	var add func([]*treeNode)
	add = func(nodes []*treeNode) {
		for _, t := range nodes {
			if t.branch == nil && t.node.Info.Err == nil {
				all = append(all, t)
			}
			add(t.children)
		}
	}
	add(g.roots)
	step := p.steps(len(all))
	defer p.say(nil)
	for nodes := range slices.Chunk(all, nameBatch) {
		if err := readTitles(ctx, log, nodes); err != nil {
			return err
		}
		for range nodes {
			step()
		}
	}
	return nil
}

// nameBatch is the number of sessions whose names are read together.
const nameBatch = 1000

// readTitles finds the titles of some sessions.
func readTitles(ctx context.Context, log *eventlog.Log, nodes []*treeNode) error {
	rows := make([]*sessionRow, len(nodes))
	for i, t := range nodes {
		rows[i] = &sessionRow{ID: t.node.ID}
	}
	if err := each(ctx, rows, func() {}, func(row *sessionRow) error {
		row.Title = readName(ctx, log, row.ID)
		return nil
	}); err != nil {
		return err
	}
	for i, t := range nodes {
		t.title = rows[i].Title
		if t.title == "" && t.node.Kind != fork.KindFork {
			t.about = readAbout(ctx, log, t.node.ID)
		}
	}
	return nil
}

// readAbout describes a session by its first event; empty if that says nothing.
func readAbout(ctx context.Context, log *eventlog.Log, session string) string {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			break
		}
		return newSessionRow(eventlog.SessionInfo{ID: session, First: e, Last: e}, programs{}).about()
	}
	return ""
}

// treeNode is a session in a tree, or an orphaned branch of a session.
type treeNode struct {
	node     *fork.Node
	title    string       // of a session
	about    string       // of a session without a title
	branch   *fork.Branch // nil for a session
	at       int64        // the seq of the event that it branches off
	children []*treeNode  // ordered by at

	orphaned int64 // events in the orphaned branches of a session
	err      error // the error of reading them
}

// newTreeNode makes the node of a session and all nodes below it. With branches,
// the orphaned branches are nodes too.
func newTreeNode(ctx context.Context, log *eventlog.Log, n *fork.Node, branches bool) (*treeNode, error) {
	t := &treeNode{node: n, at: n.Seq}
	var orphaned []*treeNode
	if branches && n.Info.Err == nil && !n.Missing {
		all, err := fork.OwnBranches(ctx, log, n.ID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t.err = err
		orphaned = t.addBranches(all)
	}
	for _, d := range n.Down {
		child, err := newTreeNode(ctx, log, d, branches)
		if err != nil {
			return nil, err
		}
		t.add(child, orphaned)
	}
	t.sort()
	return t, nil
}

// addBranches adds branches that the session's own rewinds orphaned.
func (t *treeNode) addBranches(branches []fork.Branch) (orphaned []*treeNode) {
	for i := range branches {
		b := &branches[i]
		t.orphaned += b.Counted
		x := &treeNode{node: t.node, branch: b, at: b.Base}
		t.add(x, orphaned)
		orphaned = append(orphaned, x)
	}
	return orphaned
}

// add adds x below the branch with event x.at, else below t.
func (t *treeNode) add(x *treeNode, orphaned []*treeNode) {
	for _, b := range orphaned {
		if b.branch.Orphaned(x.at) {
			t = b
			break
		}
	}
	t.children = append(t.children, x)
}

func (t *treeNode) sort() {
	slices.SortStableFunc(t.children, func(a, b *treeNode) int { return cmp.Compare(a.at, b.at) })
	for _, d := range t.children {
		if d.branch != nil {
			d.sort()
		}
	}
}

// seqs are the seqs of a branch: #5–#8, #12.
func (t *treeNode) seqs() string {
	var words []string
	for _, s := range t.branch.Own {
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

// draw draws the trees with lines.
func (g *drawing) draw(p *printer) {
	for _, t := range g.roots {
		g.node(p, t, "", "")
	}
	if len(g.roots) == 0 && p.terminal {
		p.printf("no sessions\n")
	}
}

// node draws a node after its connector. The lines of its children begin with in.
func (g *drawing) node(p *printer, t *treeNode, connector, in string) {
	head, about := g.line(p, t)
	if p.width > 0 {
		about = brief(about, max(leastColumn, p.width-columns(connector)-visible(head)-2))
	}
	p.printf("%s%s  %s\n", p.paint(dim, connector), head, p.paint(dim, about))
	for i, d := range t.children {
		next, more := "├─", "│  "
		if i == len(t.children)-1 {
			next, more = "└─", "   "
		}
		if d.branch != nil {
			next = strings.Replace(next, "─", "╌", 1)
		}
		g.node(p, d, in+next+" ", in+more)
	}
}

// line names a node and describes it. On a terminal, ids are short.
func (g *drawing) line(p *printer, t *treeNode) (head, about string) {
	if b := t.branch; b != nil {
		return p.paint(dim, at(t.at)) + " " + p.paint(yellow, "orphaned "+t.seqs()),
			fmt.Sprintf("left by the rewind %s%s", at(b.Left), quoted(b.Label, b.Reason))
	}
	id := t.node.ID
	if p.terminal {
		id = abbreviate(id, g.ids)
	}
	head = clean(id)
	if t.node.ID == g.marked {
		head = p.paint(bold, head) + " ◄"
	}
	if t.node.Up != nil && (t.at > 0 || t.node.Kind == fork.KindFork) {
		head = p.paint(dim, at(t.at)) + " " + head
	}
	return head, t.summary()
}

// summary describes a session: its origin, its events and its title.
func (t *treeNode) summary() string {
	var words []string
	if t.node.ChildID != "" {
		words = append(words, "run")
	}
	if t.node.Kind != fork.KindRoot {
		words = append(words, string(t.node.Kind)+quoted(t.node.Label, t.node.Reason)+t.from())
	}
	switch {
	case t.node.Info.Err != nil:
		return strings.Join(append(words, "unreadable: "+brief(t.node.Info.Err.Error(), 120)), " · ")
	case t.err != nil:
		words = append(words, "unreadable: "+brief(t.err.Error(), 120))
	}
	events := count(t.node.Info.Events(), "event")
	if t.orphaned > 0 {
		events += ", " + thousands(t.orphaned) + " orphaned"
	}
	words = append(words, events)
	if t.title != "" {
		words = append(words, brief(t.title, titleColumns))
	} else if t.about != "" {
		words = append(words, t.about)
	}
	return strings.Join(words, " · ")
}

// from names the parent of a root, and marks an unfinished copy.
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
