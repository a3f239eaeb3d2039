package stats

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sessiontree"
	"github.com/convlog/convlog/prices"
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
// Each session counts once. It lists all sessions of the store. At most one CostOptions
// is used. Load lists the errors.
func LoadTreeCost(ctx context.Context, log *eventlog.Log, session string, opts ...CostOptions) (TreeCost, error) {
	t := TreeCost{Session: session}
	w := sessiontree.Walk{Log: log, Set: treeParts}
	missing, err := w.Run(ctx, []string{session}, func(l *projection.Loaded, _ []string) {
		own, _ := projection.State(l, projection.Usage())
		t.Sessions = append(t.Sessions, SessionSpend{Session: l.Session, Own: own.Total})
		t.Total = t.Total.Add(own.Total)
	})
	if err != nil {
		return TreeCost{}, fmt.Errorf("cost of the tree of session %q: %w", session, err)
	}
	if len(opts) > 0 && opts[0].Prices != nil {
		if err := t.estimate(ctx, log, opts[0].Prices); err != nil {
			return TreeCost{}, err
		}
	}
	slices.SortFunc(t.Sessions[1:], func(a, b SessionSpend) int { return cmp.Compare(a.Session, b.Session) })
	t.Missing = missing
	return t, nil
}

// estimate counts the sessions anew, with estimates: states have none.
func (t *TreeCost) estimate(ctx context.Context, log *eventlog.Log, table *prices.Table) error {
	t.Total = projection.Spend{}
	for i := range t.Sessions {
		s := &t.Sessions[i]
		stats, err := Load(ctx, log, s.Session, Options{Prices: table})
		if err != nil {
			return err
		}
		s.Own = stats.Total.Spend
		t.Total = t.Total.Add(s.Own)
	}
	return nil
}

var treeParts = projection.Of("runlog:tree", projection.Usage(), projection.Children())
