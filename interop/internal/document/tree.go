package document

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// tree finds the items of a session in the log. An item without a name is a child of the
// item before it.
type tree struct {
	// where is the newest node at each seq, on the path that ends there. where[0] is the
	// root, before the first event.
	where []*node
	// keys are the nodes of items that are not redacted, by key.
	keys map[event.Digest]*node
	// results are the nodes of results, by call id.
	results map[string][]*node
	// late reports nodes that do not separate the nodes around them.
	late func(*node) bool
	// named is the seq of the item with a name; 0 if there is none.
	named func(name string) int64
}

// node is the event of an item, or talk of another program.
type node struct {
	seq      int64
	children []*node
	talk     bool
	// counted says that the item has no name: its place identifies it.
	counted  bool
	redacted bool
	shape    sessions.Shape // of a message, or of a redacted event
	key      event.Digest
	group    string
	// takenBy is the key of the withheld item that has found the redacted event.
	takenBy event.Digest
}

func newTree() *tree {
	root := &node{}
	return &tree{
		where: []*node{root}, keys: map[event.Digest]*node{}, results: map[string][]*node{}, late: func(*node) bool { return false },
	}
}

// here is the newest node.
func (t *tree) here() *node { return t.where[len(t.where)-1] }

// at is the newest node on the path to seq.
func (t *tree) at(seq int64) *node { return t.where[seq] }

// remember indexes an event of the log. p is its payload; nil if it is redacted, or
// neither a message nor a compaction.
func (t *tree) remember(e *event.Event, p event.Payload) (err error) {
	if e.Type.Name() == event.HeadMoved {
		move, _, err := event.Decode[event.HeadMove](e)
		t.moved(move.To)
		return err
	}
	n := node{seq: e.Seq, talk: isTalk(e.Type), counted: sessions.IsCounted(e), redacted: e.Redacted()}
	if !n.talk && !n.counted {
		t.skip()
		return nil
	}
	if n.redacted {
		n.group = keptGroup(e)
		n.shape, err = sessions.KeptShape(e)
	} else {
		n.setMessage(p)
		n.key = records.DigestOf(e)
	}
	t.add(&n)
	return err
}

// setMessage sets the group and the shape of a message.
func (n *node) setMessage(p event.Payload) {
	if m, ok := p.(event.Message); ok {
		n.group, n.shape = m.Group, sessions.MessageShape(&m)
	}
}

// keptGroup is the group of a redacted message; empty if it has none.
func keptGroup(e *event.Event) string {
	if e.Type.Name() != event.MessageAdded {
		return ""
	}
	m, err := event.DecodeKept[event.Message](e)
	if err != nil {
		return ""
	}
	return m.Group
}

// isTalk reports whether an event separates the items around it: an item after other
// talk is on another branch.
func isTalk(t event.Type) bool {
	switch t.Name() {
	case event.MessageAdded, event.ContextAdded, event.CompactionTriggered:
		return true
	}
	return false
}

// add indexes the newest event.
func (t *tree) add(n *node) {
	before := t.here()
	before.children = append(before.children, n)
	t.where = append(t.where, n)
	if n.key != "" && t.keys[n.key] == nil {
		t.keys[n.key] = n
	}
	for _, id := range n.shape.Results {
		t.results[id] = append(t.results[id], n)
	}
}

// skip indexes an event that is no item.
func (t *tree) skip() { t.where = append(t.where, t.here()) }

// moved indexes a head_moved.
func (t *tree) moved(to int64) {
	if to < 0 || to >= int64(len(t.where)) {
		to = 0
	}
	t.where = append(t.where, t.where[to])
}

// below are the nodes that an item after n can be, by seq: the children of n and, through
// nodes that separate nothing, their children. If erased is true, it goes through
// redacted nodes too.
func (t *tree) below(n *node, erased bool) (all []*node) {
	for todo := []*node{n}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		for _, child := range next.children {
			all = append(all, child)
			if !child.talk || t.late(child) || erased && child.redacted {
				todo = append(todo, child)
			}
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// find returns the node of an item after n; nil if there is none. items yields the item
// and the items after it, which tell a withheld item from an item that equals a later
// one.
func (t *tree) find(n *node, items func(ahead int) *sought) *node {
	it := items(0)
	if len(n.children) == 0 {
		return nil
	}
	if only := n.children[0]; len(n.children) == 1 && only.is(it.key) {
		return only
	}
	near := t.below(n, false)
	same := withKey(t.below(n, slices.ContainsFunc(near, func(c *node) bool { return c.redacted })), it.key)
	var likely *node
	ahead := lookahead{tree: t, items: items, known: map[step]bool{}}
	for _, c := range near {
		if !c.fits(it) || same != nil && same.seq < c.seq {
			continue
		}
		if c.takenBy == it.key || ahead.continues(c, 1) {
			return c
		}
		if likely == nil {
			likely = c
		}
	}
	if same != nil {
		return same
	}
	return likely
}

func withKey(all []*node, key event.Digest) *node {
	at := slices.IndexFunc(all, func(c *node) bool { return c.is(key) })
	if at < 0 {
		return nil
	}
	return all[at]
}

// is reports whether the node is the event of an item with the key.
func (n *node) is(key event.Digest) bool { return !n.redacted && n.counted && n.key == key }

// fits reports whether the node can be the redacted event of an item.
func (n *node) fits(it *sought) bool {
	return n.redacted && n.counted && (n.takenBy == "" || n.takenBy == it.key) && it.shape().Fits(&n.shape)
}

// lookahead finds out whether the items follow a redacted node.
type lookahead struct {
	tree  *tree
	items func(ahead int) *sought
	known map[step]bool
}

// step is an item after a redacted node.
type step struct {
	after *node
	item  int
}

// furthest bounds the items of a lookahead.
const furthest = 64

// continues reports whether the items after the first follow n.
func (t *tree) continues(n *node, items func(ahead int) *sought) bool {
	l := lookahead{tree: t, items: items, known: map[step]bool{}}
	return l.continues(n, 1)
}

// continues reports whether the items from i on follow n: the log has the next item that
// is not redacted at its place, or the items or the log end.
func (l *lookahead) continues(n *node, i int) bool {
	it := l.items(i)
	if it == nil || it.item.After != "" || i == furthest || len(n.children) == 0 {
		return true
	}
	follows, ok := l.known[step{n, i}]
	if !ok {
		follows = l.follows(n, it, i)
		l.known[step{n, i}] = follows
	}
	return follows
}

// follows reports whether item i follows n.
func (l *lookahead) follows(n *node, it *sought, i int) bool {
	if it.item.Anywhere || it.item.Aside || it.item.Answer {
		return l.continues(n, i+1)
	}
	near := l.tree.below(n, false)
	if sessions.Drawn(it.item.Name) {
		seq := l.tree.named(it.item.Name)
		if seq == 0 {
			return l.continues(n, i+1)
		}
		at := l.tree.at(seq)
		return (at == n || slices.Contains(near, at)) && l.continues(at, i+1)
	}
	return withKey(near, it.key) != nil ||
		slices.ContainsFunc(near, func(c *node) bool { return c.fits(it) && l.continues(c, i+1) })
}

// anywhere finds the event of an item that the session has once, at whatever place.
func (t *tree) anywhere(n *node, it *sought) *node {
	if known := t.keys[it.key]; known != nil {
		return known
	}
	for _, all := range [][]*node{t.below(n, true), t.all()} {
		for _, c := range all {
			if c.fits(it) {
				return c
			}
		}
	}
	return nil
}

// all are all nodes, by seq.
func (t *tree) all() (all []*node) {
	for i, n := range t.where {
		if n.seq == int64(i) && i > 0 {
			all = append(all, n)
		}
	}
	return all
}

// take notes that a withheld item has found n.
func (n *node) take(it *sought) {
	if n.redacted {
		n.takenBy = it.key
	}
}
