package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
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
	a.bound(0)
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return err
	}
	g := drawing{app: a, log: log, printer: a.printer()}
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
	if long {
		g.catalog = a.catalog(log, anySummary())
		defer g.catalog.Flush(ctx)
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
	catalog *stats.Catalog // nil reads the ends of sessions
	step    func()         // counts a session
	*printer
	ids    []string // of all sessions of the store, sorted; empty without a terminal
	marked string   // the session that the user named
}

// treeFormat prints trees one by one.
type treeFormat struct {
	begin, end func()
	tree       func(*treeNode) error
}

// trees reads and prints some trees at a time, so that it needs no memory for all.
func (g *drawing) trees(ctx context.Context, roots []*fork.Node, format string) error {
	f := g.format(format)
	sessions := 0
	for _, n := range roots {
		for range n.Walk() {
			sessions++
		}
	}
	g.step = g.app.steps(sessions)
	defer g.app.progress.Say(nil)
	f.begin()
	for len(roots) > 0 {
		var batch []*fork.Node
		trees := 0
		for trees < len(roots) && len(batch) < listing.Batch {
			for _, n := range roots[trees].Walk() {
				batch = append(batch, n)
			}
			trees++
		}
		about, err := g.describe(ctx, batch)
		if err != nil {
			return err
		}
		for _, n := range roots[:trees] {
			if err := f.tree(newTreeNode(n, about)); err != nil {
				return err
			}
		}
		clear(roots[:trees]) // printed trees need no memory
		roots = roots[trees:]
	}
	f.end()
	return nil
}

// description is the part of a node that is read from its session.
type description struct {
	title    string
	about    string        // of a session without a title
	branches []fork.Branch // that the session's own rewinds orphaned
	err      error         // of reading the session
}

// describe reads sessions. With a catalog it reads the branches too, and all titles.
func (g *drawing) describe(ctx context.Context, nodes []*fork.Node) (map[*fork.Node]*description, error) {
	all := make(map[*fork.Node]*description, len(nodes))
	rows := make([]*sessionRow, len(nodes))
	moved := map[string]bool{}
	for i, n := range nodes {
		all[n] = &description{}
		rows[i] = &sessionRow{ID: n.ID, Head: n.Last, Program: &listing.Program{}}
		rows[i].Fail(n.Err)
	}
	if g.catalog != nil {
		err := listing.EachSummary(ctx, g.catalog, rows, func() {}, func(row *sessionRow, s *stats.Summary) {
			row.Fill(s)
			moved[row.ID] = s.Moves > 0
		})
		if err != nil {
			return nil, err
		}
	}
	var readers sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, n := range nodes {
		free <- struct{}{}
		readers.Go(func() {
			defer func() { <-free }()
			all[n].read(ctx, g.log, n, rows[i], moved[n.ID])
			g.step()
		})
	}
	readers.Wait()
	return all, ctx.Err()
}

// read reads what the row of a session does not have.
func (d *description) read(ctx context.Context, log *eventlog.Log, n *fork.Node, row *sessionRow, moved bool) {
	if n.Err != nil || ctx.Err() != nil {
		return
	}
	d.err, d.title = row.Err(), row.KnownTitle()
	if !row.IsRead() {
		d.title = listing.Name(ctx, log, n.ID)
	}
	if moved && !n.Missing && d.err == nil {
		d.branches, d.err = fork.Branches(ctx, log, n.ID, true)
	}
	if d.title == "" && n.Kind != fork.KindFork {
		d.about = readAbout(ctx, log, n.ID)
	}
}

// readAbout describes a session by its first event; empty if that says nothing.
func readAbout(ctx context.Context, log *eventlog.Log, session string) string {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			break
		}
		return about(listing.NewRow(eventlog.SessionInfo{ID: session, First: e, Last: e}, listing.Programs{}))
	}
	return ""
}

// treeNode is a session in a tree, or an orphaned branch of a session.
type treeNode struct {
	node         *fork.Node
	*description              // of the session
	branch       *fork.Branch // nil for a session
	at           int64        // the seq of the event that it branches off
	children     []*treeNode  // ordered by at
	orphaned     int64        // events in the orphaned branches of a session
}

// newTreeNode makes the node of a session and all nodes below it. The orphaned branches
// in the descriptions are nodes too.
func newTreeNode(n *fork.Node, all map[*fork.Node]*description) *treeNode {
	t := &treeNode{node: n, description: all[n], at: n.Seq}
	orphaned := t.addBranches(t.branches)
	for _, d := range n.Down {
		t.add(newTreeNode(d, all), orphaned)
	}
	t.sort()
	return t
}

// addBranches adds branches that the session's own rewinds orphaned.
func (t *treeNode) addBranches(branches []fork.Branch) (orphaned []*treeNode) {
	for i := range branches {
		b := &branches[i]
		t.orphaned += b.Counted
		x := &treeNode{node: t.node, description: t.description, branch: b, at: b.Base}
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

// format is the format of a name.
func (g *drawing) format(name string) treeFormat {
	nothing := func() {}
	switch name {
	case "json":
		return treeFormat{nothing, nothing, func(t *treeNode) error { return t.json(g.printer, 0) }}
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
		return p.Paint(term.Dim, at(t.at)) + " " + p.Paint(term.Yellow, "orphaned "+t.seqs()),
			fmt.Sprintf("left by the rewind %s%s", at(b.Left), quoted(b.Label, b.Reason))
	}
	id := t.node.ID
	if p.Terminal {
		id = abbreviate(id, g.ids)
	}
	head = clean(id)
	if t.node.ID == g.marked {
		head = p.Paint(term.Bold, head) + " ◄"
	}
	if t.node.Up != nil && (t.at > 0 || t.node.Kind == fork.KindFork) {
		head = p.Paint(term.Dim, at(t.at)) + " " + head
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
	case t.node.Err != nil:
		return strings.Join(append(words, "unreadable: "+brief(t.node.Err.Error(), 120)), " · ")
	case t.err != nil:
		words = append(words, "unreadable: "+brief(t.err.Error(), 120))
	}
	events := count(t.node.Events(), "event")
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
