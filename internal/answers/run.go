package answers

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// Run is the state of an agent in a session, with the open work that it waits for.
type Run struct {
	Session string      `json:"session"`
	Status  flow.Status `json:"status,omitzero"`
	Agent   string      `json:"agent,omitzero"`
	Runner  string      `json:"runner,omitzero"`
	Since   time.Time   `json:"since,omitzero"`
	Turn    *ulid.ULID  `json:"turn_id,omitzero"`
	Open    []Open      `json:"open,omitzero"`
	Error   string      `json:"error,omitzero"`
}

// The kinds of Open.
const (
	OpenReview  = "review"
	OpenWait    = "wait"
	OpenOutcome = "outcome"
	OpenRetry   = "retry"
	OpenInput   = "input"
	OpenChild   = "child" // a child that has work to do
	OpenHome    = "home"  // the store to which the open turn or an input belongs
)

// Open is something that a session waits for.
type Open struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
	Seq  int64  `json:"seq,omitzero"`
	// ChildSession is the session of the child that waits, empty if the session itself does.
	ChildSession string `json:"child_session,omitzero"`
	// Until is when a review or a wait expires, or when a retry is due.
	Until time.Time         `json:"until,omitzero"`
	Class event.EffectClass `json:"class,omitzero"`
	Steer bool              `json:"steer,omitzero"`
	// Prompt and Arguments are what the person of a review decides about.
	Prompt    string         `json:"prompt,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

// Runs is flow.Runs with a catalog: it does not read a session without an agent. The catalog tells
// which these are.
func Runs(ctx context.Context, log *eventlog.Log, catalog *stats.Catalog) iter.Seq2[flow.RunInfo, error] {
	return func(yield func(flow.RunInfo, error) bool) {
		var ids, unread []string
		var heads []event.Head // of the unread sessions
		for s, err := range catalog.Sessions(ctx, true) {
			if err != nil {
				yield(flow.RunInfo{}, err)
				return
			}
			if s.Sum == nil {
				unread, heads = append(unread, s.ID), append(heads, s.Head())
			} else if s.Sum.HasRuns {
				ids = append(ids, s.ID)
			}
		}
		at := func(i int) (string, event.Head) { return unread[i], heads[i] }
		err := catalog.Each(ctx, len(unread), at, func(i int, s *stats.Summary) {
			if s.HasRuns || s.Err != nil {
				ids = append(ids, unread[i])
			}
		})
		if err != nil {
			yield(flow.RunInfo{}, err)
			return
		}
		slices.Sort(ids)
		for _, id := range ids {
			info, err := flow.Info(ctx, log, id)
			info.Session = id
			if err == nil && info.Epoch == 0 && len(info.Inbox) == 0 {
				continue
			}
			if !yield(info, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// NewRun describes the runs of a session, or the error of reading them.
func NewRun(ctx context.Context, log *eventlog.Log, x *flow.RunInfo, err error) *Run {
	row := &Run{Session: x.Session, Status: x.Status, Agent: x.Agent, Runner: x.Runner, Since: x.Since}
	if err != nil {
		row.Error = err.Error()
		return row
	}
	if x.Turn != nil {
		row.Turn = &x.Turn.ID
	}
	row.Open = append(OpenOf(x), openBelow(ctx, log, x)...)
	home, err := homeOf(ctx, log, x)
	if err != nil {
		row.Error = err.Error()
	}
	if home != "" {
		row.Open = append(row.Open, Open{Kind: OpenHome, ID: home})
	}
	return row
}

// homeOf is the store to which the open work of a session belongs, empty if it is this store.
func homeOf(ctx context.Context, log *eventlog.Log, x *flow.RunInfo) (string, error) {
	store, err := log.StoreID(ctx)
	if err != nil {
		return "", err
	}
	if x.Turn != nil && x.Home != "" && x.Home != store {
		return x.Home, nil
	}
	for _, in := range x.Inbox {
		if in.Store != "" && in.Store != store {
			return in.Store, nil
		}
	}
	return "", nil
}

// openBelow lists the open work of the children of a session, except the reviews: OpenOf
// has them. It leaves out missing and unreadable children; runs lists these on their own.
func openBelow(ctx context.Context, log *eventlog.Log, x *flow.RunInfo) (all []Open) {
	if x.Turn == nil || x.Runner != "" {
		return nil
	}
	for _, c := range x.Children {
		child, err := flow.Info(ctx, log, c.SessionID)
		if err != nil {
			continue
		}
		open := append(OpenOf(&child), openBelow(ctx, log, &child)...)
		if len(open) == 0 {
			open = []Open{{Kind: OpenChild, ID: c.SessionID, Name: child.Agent, Seq: c.Seq}}
		}
		for _, row := range open {
			row.ChildSession = cmp.Or(row.ChildSession, c.SessionID)
			if row.Kind != OpenReview {
				all = append(all, row)
			}
		}
	}
	return all
}

// OpenOf lists the open work of a session.
func OpenOf(x *flow.RunInfo) (all []Open) {
	for _, r := range x.Approvals {
		all = append(all, Open{Kind: OpenReview, ID: r.InterruptID, Name: r.Name, Seq: r.Seq, ChildSession: r.SessionID, Until: r.ExpiresAt,
			Prompt: r.Prompt, Arguments: r.Arguments})
	}
	for _, w := range x.Waits {
		all = append(all, Open{Kind: OpenWait, ID: w.WaitID, Name: w.Reason, Seq: w.Seq, Until: w.Until})
	}
	for _, e := range x.Effects {
		row := Open{Kind: OpenOutcome, ID: e.Key, Name: e.Name, Seq: e.Seq, Until: e.RetryAt, Class: e.Class}
		switch {
		case !e.RetryAt.IsZero():
			row.Kind = OpenRetry
		case x.Runner != "" || !unknownOutcome(&e):
			continue // it runs, or will run again
		}
		all = append(all, row)
	}
	for _, in := range x.Inbox {
		all = append(all, Open{Kind: OpenInput, ID: in.InputID, Seq: in.Seq, Steer: in.Steer})
	}
	return all
}

// unknownOutcome reports whether an effect that began must not run again by itself.
func unknownOutcome(e *projection.OpenEffect) bool {
	return !e.Inherited && e.RetryAt.IsZero() && (e.Class == event.EffectReconcile || e.Class == event.EffectUnsafeOnce)
}
