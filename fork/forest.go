package fork

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Kind says how a session came to be.
type Kind string

// The kinds of sessions.
const (
	// KindRoot sessions descend from no other.
	KindRoot Kind = "root"
	// KindFork sessions begin with a session_forked.
	KindFork Kind = "fork"
	// KindRun sessions are the own session of a run that another started.
	KindRun Kind = "run"
	// KindCopy sessions are copies that need no other.
	KindCopy Kind = "copy"
)

// Node is a session in the forest.
type Node struct {
	ID   string
	Kind Kind
	// Parent is the session that was forked, or started the run, or was copied;
	// Seq the event of it behind which. Seq is 0 where it is not known.
	Parent string
	Seq    int64
	// Label and Reason are those of the fork.
	Label, Reason string
	// Missing says that the parent is not in the store.
	Missing bool
	// Partial says that the session is a copy that was not finished.
	Partial bool
	// Info is the session's row of the listing, its Err included.
	Info eventlog.SessionInfo
	// Up is the parent's node, nil for what stands at the root of a tree.
	Up *Node
	// Down are the forks, runs and copies, ordered by Seq and id.
	Down []*Node
}

// Forks are the sessions forked from n.
func (n *Node) Forks() (forks []*Node) {
	for _, d := range n.Down {
		if d.Kind == KindFork {
			forks = append(forks, d)
		}
	}
	return forks
}

// Forest is how the sessions of a store descend from each other.
type Forest struct {
	// Roots are the nodes without a parent in the store, ordered by id.
	Roots []*Node

	nodes map[string]*Node
}

// Tree lists all sessions of a log with their parents, forks, runs and copies,
// from the first and last events of each. A session that cannot be read has its
// error in Info, and stands at a root. Sessions that are their own ancestors
// stand there too, with a *eventlog.CorruptError (ErrCycle).
func Tree(ctx context.Context, log *eventlog.Log) (*Forest, error) {
	f := &Forest{nodes: map[string]*Node{}}
	var order []*Node
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, fmt.Errorf("tree: %w", err)
		}
		n := NodeOf(info)
		f.nodes[n.ID] = n
		order = append(order, n)
	}
	for _, n := range order {
		f.hang(n)
	}
	f.cutCycles(order)
	for _, n := range order {
		slices.SortStableFunc(n.Down, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	}
	return f, nil
}

// NodeOf reads from a row of a listing where its session comes from, and reads
// nothing else: the node hangs nowhere. Tree is for those that do.
func NodeOf(info eventlog.SessionInfo) *Node {
	n := &Node{ID: info.ID, Kind: KindRoot, Info: info}
	first := &info.First
	if info.Err != nil || first.Seq == 0 {
		return n
	}
	if first.Type.Name() == event.SessionForked && first.Seq > 0 {
		f, _, err := event.Decode[event.Fork](first)
		n.Kind, n.Parent, n.Seq, n.Label, n.Reason = KindFork, f.Parent, f.Seq, f.Label, f.Reason
		n.Info.Err = err
		return n
	}
	if origin, copied := copyOrigin(first); copied {
		n.Kind, n.Parent, n.Seq = KindCopy, origin.Session, origin.Through
		n.Partial = info.Last.Seq < origin.Through
		return n
	}
	if first.Type.Name() == event.SessionStarted {
		var started struct {
			Parent event.SessionParent `json:"parent"`
		}
		if structure(first) != nil && decodeStructure(first, &started) == nil && started.Parent.SessionID != "" {
			n.Kind, n.Parent, n.Seq = KindRun, started.Parent.SessionID, started.Parent.Seq
		}
	}
	return n
}

// hang hangs a node below its parent.
func (f *Forest) hang(n *Node) {
	if n.Parent == "" {
		f.Roots = append(f.Roots, n)
		return
	}
	up := f.nodes[n.Parent]
	if up == nil {
		n.Missing = true
		f.Roots = append(f.Roots, n)
		return
	}
	n.Up = up
	up.Down = append(up.Down, n)
}

// cutCycles puts nodes that no root leads to at the root, one for each cycle.
func (f *Forest) cutCycles(order []*Node) {
	reached := map[*Node]bool{}
	reach := func(n *Node) {
		for stack := []*Node{n}; len(stack) > 0; {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			reached[top] = true
			stack = append(stack, top.Down...)
		}
	}
	for _, n := range f.Roots {
		reach(n)
	}
	for _, n := range order {
		if reached[n] {
			continue
		}
		n = onCycle(n)
		n.Up.Down = slices.DeleteFunc(n.Up.Down, func(d *Node) bool { return d == n })
		n.Up = nil
		n.Info.Err = &eventlog.CorruptError{Session: n.ID, Offset: -1, Seq: n.Info.First.Seq, Cause: ErrCycle}
		f.Roots = append(f.Roots, n)
		reach(n)
	}
	slices.SortFunc(f.Roots, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
}

// onCycle follows the parents of n until one comes again.
func onCycle(n *Node) *Node {
	for seen := map[*Node]bool{}; !seen[n]; n = n.Up {
		seen[n] = true
	}
	return n
}

// Node finds a session; nil if the store has none of that id.
func (f *Forest) Node(id string) *Node { return f.nodes[id] }

// All yields every node with its depth, parents before what hangs below them.
func (f *Forest) All() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		for _, n := range f.Roots {
			if !n.walk(0, yield) {
				return
			}
		}
	}
}

// Walk yields n and all below it, with their depths below n.
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
