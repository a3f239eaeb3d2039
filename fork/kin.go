package fork

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

// Parent is the session that was forked to make session; ok is false, and the
// Ancestor zero, for one that is no fork.
func Parent(ctx context.Context, log *eventlog.Log, session string) (a Ancestor, ok bool, err error) {
	first, err := firstOwn(ctx, log, session)
	if err == nil && first.Type.Name() == event.SessionForked {
		ok = true
		a, err = ancestorOf(&first)
	}
	if err != nil {
		return Ancestor{}, false, fmt.Errorf("parent of session %q: %w", session, err)
	}
	return a, ok, nil
}

// Children are the sessions forked from session, ordered by fork point and id.
// Runs and copies are not among them; Tree has those. It reads a listing of the
// store, as do Siblings and Leaves.
func Children(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	n, err := nodeIn(ctx, log, session)
	if err != nil {
		return nil, err
	}
	return idsOf(n.Forks()), nil
}

// Siblings are the other forks of the session's parent; a session that is no
// fork has none.
func Siblings(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	n, err := nodeIn(ctx, log, session)
	if err != nil || n.Kind != KindFork || n.Up == nil {
		return nil, err
	}
	var others []string
	for _, id := range idsOf(n.Up.Forks()) {
		if id != session {
			others = append(others, id)
		}
	}
	return others, nil
}

// Leaves are the descendants of session, by forks, that have no forks
// themselves; session itself if it has none.
func Leaves(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	n, err := nodeIn(ctx, log, session)
	if err != nil {
		return nil, err
	}
	var leaves []string
	for stack := []*Node{n}; len(stack) > 0; {
		top := stack[0]
		stack = stack[1:]
		forks := top.Forks()
		if len(forks) == 0 {
			leaves = append(leaves, top.ID)
		}
		stack = append(stack, forks...)
	}
	return leaves, nil
}

// Needs names the sessions that need session: its direct forks, which read
// their past through it. Remove is refused while there are any.
func Needs(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	return Children(ctx, log, session)
}

// Remove removes a session with all its events. It is refused with
// eventlog.ErrInUse, naming them, while forks need it: copy those first.
// Log.Remove says more.
func Remove(ctx context.Context, log *eventlog.Log, session string, opts ...erase.RemoveOptions) error {
	return erase.Remove(ctx, log, session, opts...)
}

func nodeIn(ctx context.Context, log *eventlog.Log, session string) (*Node, error) {
	f, err := Tree(ctx, log)
	if err != nil {
		return nil, err
	}
	if n := f.Node(session); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
}

func idsOf(nodes []*Node) (ids []string) {
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}
