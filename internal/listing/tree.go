package listing

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/runlog/stats"
)

// TreeReader describes the sessions of trees.
type TreeReader struct {
	Log     *eventlog.Log
	Catalog *stats.Catalog
	// Branches says that the descriptions have the branches. TreeReader reads all of the sessions
	// that the catalog does not know then, and else the ends of sessions without a name in Names.
	Branches bool
	// Names are the names that Catalog.Sessions has. Describe removes the names that it has used.
	Names map[string]string
	// Step counts a session; it may be called concurrently.
	Step func()
}

// Description is the part of a node that is read from its session.
type Description struct {
	Title    string
	About    string        // of a session without a title
	Branches []fork.Branch // that the session's own rewinds orphaned
	Err      error         // of reading the session
}

// Describe describes nodes.
func (r *TreeReader) Describe(ctx context.Context, nodes []*fork.Node) (map[*fork.Node]*Description, error) {
	all := make(map[*fork.Node]*Description, len(nodes))
	rows := make([]*Row, len(nodes))
	moved := map[string]bool{}
	for i, n := range nodes {
		all[n] = &Description{}
		rows[i] = &Row{ID: n.ID, Head: n.Last, Program: &Program{}}
		rows[i].Fail(n.Err)
	}
	if r.Branches {
		err := EachSummary(ctx, r.Catalog, rows, func() {}, func(row *Row, s *stats.Summary) {
			row.Fill(s)
			moved[row.ID] = s.Moves > 0
		})
		if err != nil {
			return nil, err
		}
	} else {
		unnamed := slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool {
			title, ok := r.Names[row.ID]
			if ok {
				row.Content = &Content{Title: title}
				delete(r.Names, row.ID)
			}
			return ok
		})
		eachName(ctx, r.Catalog, unnamed, func(row *Row, name string) { row.Content = &Content{Title: name} })
	}
	var readers sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, n := range nodes {
		if title := rows[i].KnownTitle(); title != "" && !r.Branches {
			all[n].Title = title
			r.Step()
			continue
		}
		free <- struct{}{}
		readers.Go(func() {
			defer func() { <-free }()
			all[n].read(ctx, r.Log, n, rows[i], moved[n.ID])
			r.Step()
		})
	}
	readers.Wait()
	return all, ctx.Err()
}

// read reads what the row of a session does not have.
func (d *Description) read(ctx context.Context, log *eventlog.Log, n *fork.Node, row *Row, moved bool) {
	if n.Err != nil || ctx.Err() != nil {
		return
	}
	d.Err, d.Title = row.Err(), row.KnownTitle()
	if row.Content == nil {
		d.Title = Name(ctx, log, n.ID)
	}
	if moved && !n.Missing && d.Err == nil {
		d.Branches, d.Err = fork.Branches(ctx, log, n.ID, true)
	}
	if d.Title == "" && n.Kind != fork.KindFork {
		d.About = readAbout(ctx, log, n.ID)
	}
}

// readAbout describes a session by its first event; empty if that says nothing.
func readAbout(ctx context.Context, log *eventlog.Log, session string) string {
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			break
		}
		return NewRow(eventlog.SessionInfo{ID: session, First: e, Last: e}, Programs{}).About()
	}
	return ""
}

// TreeNode is a session in a tree, or an orphaned branch of a session.
type TreeNode struct {
	Node         *fork.Node
	*Description              // of the session
	Branch       *fork.Branch // nil for a session
	At           int64        // the seq of the event that it branches off
	Children     []*TreeNode  // ordered by At
	Orphaned     int64        // events in the orphaned branches of a session
}

// NewTreeNode makes the node of a session and all described nodes below it. The orphaned
// branches in the descriptions are nodes too.
func NewTreeNode(n *fork.Node, all map[*fork.Node]*Description) *TreeNode {
	t := &TreeNode{Node: n, Description: all[n], At: n.Seq}
	orphaned := t.addBranches(t.Branches)
	for _, d := range n.Down {
		if all[d] != nil {
			t.add(NewTreeNode(d, all), orphaned)
		}
	}
	t.sort()
	return t
}

// addBranches adds branches that the session's own rewinds orphaned.
func (t *TreeNode) addBranches(branches []fork.Branch) (orphaned []*TreeNode) {
	for i := range branches {
		b := &branches[i]
		t.Orphaned += b.Counted
		x := &TreeNode{Node: t.Node, Description: t.Description, Branch: b, At: b.Base}
		t.add(x, orphaned)
		orphaned = append(orphaned, x)
	}
	return orphaned
}

// add adds x below the branch with event x.At, else below t.
func (t *TreeNode) add(x *TreeNode, orphaned []*TreeNode) {
	for _, b := range orphaned {
		if b.Branch.Orphaned(x.At) {
			t = b
			break
		}
	}
	t.Children = append(t.Children, x)
}

func (t *TreeNode) sort() {
	slices.SortStableFunc(t.Children, func(a, b *TreeNode) int { return cmp.Compare(a.At, b.At) })
	for _, d := range t.Children {
		if d.Branch != nil {
			d.sort()
		}
	}
}

// Sessions are the child sessions of t and of its branches. It calls branch for each branch.
func (t *TreeNode) Sessions(branch func(*fork.Branch)) (below []*TreeNode) {
	for _, d := range t.Children {
		if d.Branch == nil {
			below = append(below, d)
			continue
		}
		branch(d.Branch)
		below = append(below, d.Sessions(branch)...)
	}
	return below
}
