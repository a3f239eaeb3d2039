package fork

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// The kinds of sessions.
const (
	// KindRoot is a session without a parent.
	KindRoot = "root"
	// KindFork is a session that begins with session_forked.
	KindFork = "fork"
	// KindRun is the session of a run that another session started.
	KindRun = "run"
	// KindCopy is a copy of another session; it does not need that session.
	KindCopy = "copy"
)

// Node is a session in the forest, without its events, so that a forest of many sessions is
// small.
type Node struct {
	ID string
	// Origin is never nil. All sessions of KindRoot share one: do not change it.
	*Origin
	// First is the seq of the session's own first event, and Last identifies its last one.
	// They are zero if the session cannot be read.
	First int64
	Last  event.Head
	// Active is the time of the last event.
	Active time.Time
	// Bytes is the size of the session's lines.
	Bytes int64
	// State says that the session has the state of a program and no conversation, as its first
	// event is marked (event.Session.State). Lists leave it out unless asked.
	State bool
	// Err is set if the session cannot be read.
	Err error
	// Up is the parent's node; nil at the root of a tree.
	Up *Node
	// Down are the forks, runs and copies, ordered by Seq and ID.
	Down []*Node

	inTree bool // a root is above the node, or the node is a root
}

// Origin describes how a session began. It is apart from Node, so that a forest of many
// roots is small.
type Origin struct {
	// Kind is KindRoot, KindFork, KindRun or KindCopy.
	Kind string
	// Parent is the session that was forked or copied, or that started the run. Seq
	// is the parent's event after which the session begins; 0 if it is unknown.
	Parent string
	Seq    int64
	// Label and Reason are the fork's.
	Label, Reason string
	// ChildID is the child run of a fork that is the session of a child; empty for a branch.
	ChildID string
	// Missing means that the parent is not in the store.
	Missing bool
	// Partial means that the session is an unfinished copy.
	Partial bool
}

// rootOrigin is the origin of each session of KindRoot.
var rootOrigin = Origin{Kind: KindRoot}

// Events is the number of the session's own events.
func (n *Node) Events() int64 {
	if n.Last.Seq == 0 {
		return 0
	}
	return n.Last.Seq - n.First + 1
}

// Forks are the sessions forked from n. They need n: it cannot be removed before
// them.
func (n *Node) Forks() (forks []*Node) {
	for _, d := range n.Down {
		if d.Kind == KindFork {
			forks = append(forks, d)
		}
	}
	return forks
}

// branches are the forks that are not the session of a child.
func (n *Node) branches() []*Node {
	return slices.DeleteFunc(n.Forks(), func(d *Node) bool { return d.ChildID != "" })
}

// Siblings are the other branches of a branch's parent. A fork that is the session of a
// child is no branch.
func (n *Node) Siblings() []*Node {
	if n.Kind != KindFork || n.ChildID != "" || n.Up == nil {
		return nil
	}
	return slices.DeleteFunc(n.Up.branches(), func(d *Node) bool { return d == n })
}

// Leaves are the sessions without branches among n, its branches, their branches, and so
// on.
func (n *Node) Leaves() (leaves []*Node) {
	for queue := []*Node{n}; len(queue) > 0; queue = queue[1:] {
		branches := queue[0].branches()
		if len(branches) == 0 {
			leaves = append(leaves, queue[0])
		}
		queue = append(queue, branches...)
	}
	return leaves
}

// Forest is how the sessions of a store descend from each other.
type Forest struct {
	// Roots are the nodes without a parent in the store, ordered by ID.
	Roots []*Node

	nodes []*Node // by ID
}

// Tree lists all sessions of a log with their parents, forks, runs and copies. It
// reads the first and last event of each session. A session that cannot be read is
// a root, with its error. A session that is its own ancestor is a root
// too, with a *eventlog.CorruptError that matches engine.ErrCycle.
// sessions is a listing of the log, in any order, to use instead of Log.Sessions, for example the
// one of a catalog.
func Tree(ctx context.Context, log *eventlog.Log, sessions ...iter.Seq2[eventlog.SessionInfo, error]) (*Forest, error) {
	f := &Forest{}
	for info, err := range append(sessions, log.Sessions(ctx))[0] {
		if err != nil {
			return nil, fmt.Errorf("tree: %w", err)
		}
		f.nodes = append(f.nodes, NodeOf(info))
	}
	slices.SortFunc(f.nodes, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	for _, n := range f.nodes {
		f.link(n)
	}
	f.cutCycles()
	for _, n := range f.nodes {
		slices.SortStableFunc(n.Down, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	}
	return f, nil
}

// NodeOf is the node of one row of a listing, without links to other nodes. Tree
// links them. It reads nothing but the row.
func NodeOf(info eventlog.SessionInfo) *Node {
	n := &Node{ID: info.ID, Origin: &rootOrigin,
		First: info.First.Seq, Last: info.Head(), Active: info.Last.Timestamp, Bytes: info.Bytes, Err: info.Err}
	first := &info.First
	if info.Err != nil || first.Seq == 0 {
		return n
	}
	if first.Type.Name() == event.SessionForked && first.Seq > 0 {
		f, _, err := event.Decode[event.Fork](first)
		n.Err = err
		n.Origin = &Origin{Kind: KindFork, Parent: f.Parent, Seq: f.Seq, Label: f.Label, Reason: f.Reason, ChildID: f.Child.ChildID}
		return n
	}
	var started event.Session
	if first.Type.Name() == event.SessionStarted {
		started, _ = event.DecodeKept[event.Session](first) // a damaged payload has no parent
		n.State = started.State
	}
	if original, through, copied := first.CopyOrigin(); copied {
		n.Origin = &Origin{Kind: KindCopy, Parent: original, Seq: through, Partial: info.Last.Seq < through}
		return n
	}
	if started.Parent.SessionID != "" {
		n.Origin = &Origin{Kind: KindRun, Parent: started.Parent.SessionID, Seq: started.Parent.Seq}
	}
	return n
}

// link links a node with its parent.
func (f *Forest) link(n *Node) {
	if n.Parent == "" {
		f.Roots = append(f.Roots, n)
		return
	}
	up := f.Node(n.Parent)
	if up == nil {
		n.Missing = true
		f.Roots = append(f.Roots, n)
		return
	}
	n.Up, n.Parent = up, up.ID // one text in memory
	up.Down = append(up.Down, n)
}

// cutCycles makes one node of each cycle a root.
func (f *Forest) cutCycles() {
	reach := func(n *Node) {
		for stack := []*Node{n}; len(stack) > 0; {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			top.inTree = true
			stack = append(stack, top.Down...)
		}
	}
	for _, n := range f.Roots {
		reach(n)
	}
	for _, n := range f.nodes {
		if n.inTree {
			continue
		}
		n = onCycle(n)
		n.Up.Down = slices.DeleteFunc(n.Up.Down, func(d *Node) bool { return d == n })
		n.Up = nil
		n.Err = &eventlog.CorruptError{Session: n.ID, Offset: -1, Seq: n.First, Cause: engine.ErrCycle}
		f.Roots = append(f.Roots, n)
		reach(n)
	}
	slices.SortFunc(f.Roots, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
}

// onCycle follows the parents of n to a node of the cycle.
func onCycle(n *Node) *Node {
	for seen := map[*Node]bool{}; !seen[n]; n = n.Up {
		seen[n] = true
	}
	return n
}

// Node is the node of a session; nil if the store does not have it.
func (f *Forest) Node(id string) *Node {
	i, found := slices.BinarySearchFunc(f.nodes, id, func(n *Node, id string) int { return cmp.Compare(n.ID, id) })
	if !found {
		return nil
	}
	return f.nodes[i]
}

// All yields every node with its depth, parents before children.
func (f *Forest) All() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		for _, n := range f.Roots {
			if !n.walk(0, yield) {
				return
			}
		}
	}
}

// Walk yields n and its descendants, each with its depth below n.
func (n *Node) Walk() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) { n.walk(0, yield) }
}

func (n *Node) walk(depth int, yield func(int, *Node) bool) bool {
	if !yield(depth, n) {
		return false
	}
	for _, d := range n.Down {
		if !d.walk(depth+1, yield) {
			return false
		}
	}
	return true
}
