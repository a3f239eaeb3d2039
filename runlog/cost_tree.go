package runlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// TreeCost is what a session, its child runs and its forks have spent together.
type TreeCost struct {
	Session string `json:"session"`
	// Total is the sum of what the sessions spent by themselves.
	Total projection.Spend `json:"total"`
	// Sessions are those that were counted, the root first, then in order of ids.
	Sessions []SessionSpend `json:"sessions"`
	// Missing are child sessions that the store does not have.
	Missing []string `json:"missing,omitzero"`
}

// SessionSpend is what a session spent by itself.
type SessionSpend struct {
	Session string           `json:"session"`
	Own     projection.Spend `json:"own"`
}

// LoadTreeCost sums what a session and all sessions below it have spent: child
// runs, by their child_* events or by the parent that they name, and forks, and
// so on down. Each session counts once. It looks at every session of the store.
// See Load for the errors.
func LoadTreeCost(ctx context.Context, log *eventlog.Log, session string) (TreeCost, error) {
	below, err := sessionsBelow(ctx, log)
	if err != nil {
		return TreeCost{}, fmt.Errorf("cost of the tree of session %q: %w", session, err)
	}
	t := TreeCost{Session: session}
	seen := map[string]bool{session: true}
	missing := map[string]bool{}
	for queue := []string{session}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		l, err := projection.LoadSet(ctx, log, at, treeParts)
		if at != session && errors.Is(err, eventlog.ErrNotFound) {
			missing[at] = true
			continue
		}
		if err != nil {
			return TreeCost{}, err
		}
		own, _ := projection.State(l, projection.Usage())
		t.Sessions = append(t.Sessions, SessionSpend{Session: at, Own: own.Total})
		t.Total = t.Total.Add(own.Total)
		children, _ := projection.State(l, projection.Children())
		for _, id := range slices.Concat(sessionsOf(children), below[at]) {
			if !seen[id] {
				seen[id] = true
				queue = append(queue, id)
			}
		}
	}
	slices.SortFunc(t.Sessions[1:], func(a, b SessionSpend) int { return cmp.Compare(a.Session, b.Session) })
	t.Missing = slices.Sorted(maps.Keys(missing))
	return t, nil
}

var treeParts = projection.Of("runlog:tree", projection.Usage(), projection.Children())

// sessionsBelow are the sessions that name another as the one they were forked
// from or run by, by that one, ordered by id.
func sessionsBelow(ctx context.Context, log *eventlog.Log) (map[string][]string, error) {
	below := map[string][]string{}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		above, err := sessionAbove(ctx, log, &info)
		if err != nil {
			return nil, err
		}
		if above != "" {
			below[above] = append(below[above], info.ID)
		}
	}
	return below, nil
}

// sessionAbove is the session that one names; empty if it names none, or
// cannot be read.
func sessionAbove(ctx context.Context, log *eventlog.Log, info *eventlog.SessionInfo) (string, error) {
	first := info.First
	switch {
	case first.Type.Name() == event.SessionForked:
		f, _, err := event.Decode[event.Fork](&first)
		return f.Parent, err
	case first.Type.Name() != event.SessionStarted || first.Inherited():
		return "", nil
	}
	if first.Data == nil && !first.Redacted() { // spilled
		var err error
		if first, err = log.Event(ctx, info.ID, first.Seq); err != nil {
			return "", err
		}
	}
	p, err := event.DecodeKept[event.Session](&first)
	return p.Parent.SessionID, err
}

// sessionsOf are the sessions of child runs.
func sessionsOf(children *projection.ChildList) (ids []string) {
	for _, r := range children.Runs {
		ids = append(ids, r.SessionID)
	}
	return ids
}
