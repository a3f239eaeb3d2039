package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
)

// treePage draws the sessions that descend from each other, and the branches that rewinds
// orphaned.
var treePage = page{pattern: "/s/{session}/tree", template: "tree.html", tab: "Tree", load: (*Handler).tree}

// treeView is the page of a tree.
type treeView struct {
	*sessionHead
	Root           *treeItem
	Sessions       int // of the tree
	From, To       int // the sessions that the page shows, counted from 1
	Earlier, Later string
}

// treeItem is a session or an orphaned branch.
type treeItem struct {
	Name, Link string
	On         bool // the session of the page
	Kind       string
	Facts      []string
	// At is the event that the item branches off, and AtLink its page.
	At, AtLink string
	Orphaned   bool   // a branch
	Compare    string // the address of a comparison with the active path or the parent
	Problem    string
	Items      []*treeItem
}

// treeSessions is the most sessions that a page draws.
const treeSessions = 100

func (h *Handler) tree(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	n, root, err := h.treeOf(r.Context(), s.ID)
	if err != nil {
		return view{}, err
	}
	var all []*fork.Node
	for _, x := range root.Walk() {
		all = append(all, x)
	}
	from, err := seqOf(r, "from", int64(slices.Index(all, n)/treeSessions*treeSessions+1))
	if err != nil {
		return view{}, err
	}
	begin := int(min(from, int64(len(all)))) - 1
	shown := all[begin:min(begin+treeSessions, len(all))]
	v := treeView{sessionHead: s, Sessions: len(all), From: begin + 1, To: begin + len(shown)}
	path := sessionPath(s.ID, "tree") + "?from="
	if begin > 0 {
		v.Earlier = path + strconv.Itoa(max(1, v.From-treeSessions))
	}
	if v.To < len(all) {
		v.Later = path + strconv.Itoa(v.To+1)
	}
	reader := listing.TreeReader{Log: h.log, Catalog: h.rows.catalog, Branches: true, Step: func() {}}
	about, err := reader.Describe(r.Context(), withAncestors(shown))
	if err != nil {
		return view{}, err
	}
	v.Root = newTreeItem(listing.NewTreeNode(root, about), s.ID)
	return view{title: "Tree · " + s.Title, body: v}, nil
}

// treeOf is the node of a session, and the root of its tree.
func (h *Handler) treeOf(ctx context.Context, session string) (n, root *fork.Node, err error) {
	forest, err := fork.Tree(ctx, h.log)
	if err != nil {
		return nil, nil, err
	}
	if n = forest.Node(session); n == nil {
		return nil, nil, eventlog.ErrNotFound
	}
	for root = n; root.Up != nil; root = root.Up {
	}
	return n, root, nil
}

// withAncestors adds the nodes above those that are shown.
func withAncestors(shown []*fork.Node) []*fork.Node {
	var above []*fork.Node
	for n := shown[0].Up; n != nil; n = n.Up {
		above = append(above, n) // the later nodes are below one of them
	}
	return append(above, shown...)
}

// treeBranches is the most branches of a session that a page draws.
const treeBranches = 100

func newTreeItem(t *listing.TreeNode, session string) *treeItem {
	x := &treeItem{}
	if t.Branch != nil {
		x.branch(t)
	} else {
		x.session(t, session)
	}
	branches := 0
	for _, d := range t.Children {
		if d.Branch != nil {
			if branches++; branches > treeBranches {
				continue
			}
		}
		x.Items = append(x.Items, newTreeItem(d, session))
	}
	if left := branches - treeBranches; left > 0 {
		x.Facts = append(x.Facts, transcript.Count(int64(left), "branch")+" not drawn")
	}
	return x
}

// session describes a session as the command tree does.
func (x *treeItem) session(t *listing.TreeNode, session string) {
	n := t.Node
	x.Name = transcript.Visible(cmp.Or(htmlpage.Brief(t.Title, 110), htmlpage.Brief(t.About, 60), n.ID))
	x.Link, x.On = sessionPath(n.ID), n.ID == session
	if n.Up != nil && (t.At > 0 || n.Kind == fork.KindFork) {
		x.At, x.AtLink = transcript.At(t.At), eventLink(n.Up.ID, t.At)
	}
	if n.Kind == fork.KindFork && n.Up != nil {
		x.Compare = diffPath(n.Up.ID, 0, n.ID, 0)
	}
	if n.Kind != fork.KindRoot {
		x.Kind = n.Kind
	}
	if n.ChildID != "" {
		x.Kind = fork.KindRun + " · " + x.Kind
	}
	for _, text := range []string{htmlpage.Brief(n.Label, 60), htmlpage.Brief(n.Reason, 60)} {
		if text != "" {
			x.Facts = append(x.Facts, transcript.Visible(text))
		}
	}
	if n.Up == nil && n.Parent != "" {
		text := "of " + htmlpage.Brief(n.Parent, 40)
		if n.Missing {
			text += ", which is missing"
		}
		x.Facts = append(x.Facts, transcript.Visible(text))
	}
	if n.Partial {
		x.Facts = append(x.Facts, "unfinished copy")
	}
	x.Facts = append(x.Facts, transcript.Count(n.Events(), "event"))
	if t.Orphaned > 0 {
		x.Facts = append(x.Facts, transcript.Thousands(t.Orphaned)+" rewound")
	}
	if err := cmp.Or(n.Err, t.Err); err != nil {
		x.Problem = transcript.Visible(err.Error())
	}
}

// branch describes a branch that a rewind orphaned.
func (x *treeItem) branch(t *listing.TreeNode) {
	b, id := t.Branch, t.Node.ID
	x.Orphaned, x.Kind, x.Name = true, "rewound", "rewound "+seqs(b)
	x.Link = sessionPath(id) + "?from=" + itoa(b.Own[0].From)
	x.At, x.AtLink, x.Compare = transcript.At(b.Base), eventLink(id, max(1, b.Base)), diffPath(id, b.Tip, id, 0)
	x.Facts = append(x.Facts, transcript.Count(b.Counted, "event"), "left by the rewind "+transcript.At(b.Left))
	for _, text := range []string{htmlpage.Brief(b.Label, 60), htmlpage.Brief(b.Reason, 60)} {
		if text != "" {
			x.Facts = append(x.Facts, transcript.Visible(text))
		}
	}
}

// seqs are the seqs of a branch.
func seqs(b *fork.Branch) string {
	text := ""
	for i, s := range b.Own {
		if i == 3 {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += transcript.At(s.From)
		if s.To > s.From {
			text += "–" + transcript.At(s.To)
		}
	}
	return text
}
