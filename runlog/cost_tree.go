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

// TreeCost is the spend of a session, its child runs and its forks.
type TreeCost struct {
	Session string `json:"session"`
	// Total is the sum over Sessions.
	Total projection.Spend `json:"total"`
	// Sessions are the counted sessions: the root first, then by id.
	Sessions []SessionSpend `json:"sessions"`
	// Missing are child sessions that the store does not have.
	Missing []string `json:"missing,omitzero"`
}

// SessionSpend is the spend of a session's own events.
type SessionSpend struct {
	Session string           `json:"session"`
	Own     projection.Spend `json:"own"`
}

// LoadTreeCost adds the spend of a session, its child runs and its forks, at all
// depths. Child runs come from child events and from the parent in session_started.
// Each session counts once. It lists all sessions of the store. Load lists the
// errors.
func LoadTreeCost(ctx context.Context, log *eventlog.Log, session string) (TreeCost, error) {
	children, err := childrenByParent(ctx, log)
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
		runs, _ := projection.State(l, projection.Children())
		for _, id := range slices.Concat(sessionsOf(runs), children[at]) {
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

// childrenByParent returns the forks and child runs of each session, ordered by id.
func childrenByParent(ctx context.Context, log *eventlog.Log) (map[string][]string, error) {
	children := map[string][]string{}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		parent, err := parentOf(ctx, log, &info)
		if err != nil {
			return nil, err
		}
		if parent != "" {
			children[parent] = append(children[parent], info.ID)
		}
	}
	return children, nil
}

// parentOf returns the session that a session was forked from or run by; empty if
// there is none.
func parentOf(ctx context.Context, log *eventlog.Log, info *eventlog.SessionInfo) (string, error) {
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

// sessionsOf returns the sessions of child runs.
func sessionsOf(list *projection.ChildList) (ids []string) {
	for _, r := range list.Runs {
		ids = append(ids, r.SessionID)
	}
	return ids
}
