package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// statuses are the values of --status.
var statuses = []flow.Status{flow.StatusNew, flow.StatusRunning, flow.StatusHibernated, flow.StatusWaiting,
	flow.StatusExpired, flow.StatusFailed, flow.StatusAborted, flow.StatusFinished}

func statusNames() (names []string) {
	for _, s := range statuses {
		names = append(names, string(s))
	}
	return names
}

func (a *app) runsCommand() *cobra.Command {
	var only []string
	var all bool
	cmd := a.command(&cobra.Command{
		Use:   "runs [SESSION...]",
		Short: "List what agents do in the sessions, and what they wait for",
		Long: `List the sessions that agents of package flow ran, and the sessions with inputs for
them; newest activity first. --all lists the other sessions too.

STATUS is new (no turn began), running, hibernated (the turn waits for an answer, or
for the agent to start), waiting (for a signal or a time), expired (the turn is open
and has no runner; the agent continues it when it starts), failed, aborted or finished.
RUNNER is the living process that has the session, also between two turns. WAITS FOR
lists open reviews, waits, effects and inputs, with the beginnings of ids:
  review TOOL ID    logtool agent approve, deny or answer
  wait NAME ID      logtool agent resolve
  outcome NAME ID   the effect began and has no result: logtool agent reconcile
  retry NAME        the next attempt after an error
  input ID          no turn has begun with this input yet
  home ID           the turn belongs to another store, and this is a copy: logtool agent take
  the agent to start`,
		Example: "  logtool agent runs --status hibernated,waiting",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range only {
				if !slices.Contains(statuses, flow.Status(s)) {
					return usagef("--status is one of %s, not %q", strings.Join(statusNames(), ", "), s)
				}
			}
			return a.reading(func(log *eventlog.Log) error { return a.runs(cmd.Context(), log, args, only, all) })
		},
	}, traits{verb: "reading", args: []argument{sessionArg, more}})
	cmd.Flags().StringSliceVar(&only, "status", nil, "only sessions with this `status`; repeatable")
	completeFlag(cmd, "status", statusNames()...)
	cmd.Flags().BoolVar(&all, "all", false, "also sessions that no agent ran")
	return cmd
}

// runRow is a session of runs with --json.
type runRow struct {
	Session string      `json:"session"`
	Status  flow.Status `json:"status,omitzero"`
	Agent   string      `json:"agent,omitzero"`
	Runner  string      `json:"runner,omitzero"`
	Since   time.Time   `json:"since,omitzero"`
	Turn    *ulid.ULID  `json:"turn_id,omitzero"`
	Open    []openRow   `json:"open,omitzero"`
	Error   string      `json:"error,omitzero"`
}

// The kinds of openRow.
const (
	openReview  = "review"
	openWait    = "wait"
	openOutcome = "outcome"
	openRetry   = "retry"
	openInput   = "input"
	openChild   = "child" // a child that has work to do
	openHome    = "home"  // the store to which the open turn or an input belongs
)

// openRow is something that a session waits for.
type openRow struct {
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
}

func newRunRow(ctx context.Context, log *eventlog.Log, x *flow.RunInfo, err error) *runRow {
	row := &runRow{Session: x.Session, Status: x.Status, Agent: x.Agent, Runner: x.Runner, Since: x.Since}
	if err != nil {
		row.Error = err.Error()
		return row
	}
	if x.Turn != nil {
		row.Turn = &x.Turn.ID
	}
	row.Open = append(openWork(x), openBelow(ctx, log, x)...)
	home, err := homeOf(ctx, log, x)
	if err != nil {
		row.Error = err.Error()
	}
	if home != "" {
		row.Open = append(row.Open, openRow{Kind: openHome, ID: home})
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

// openBelow lists the open work of the children of a session, except the reviews: openWork
// has them. It leaves out missing and unreadable children; runs lists these on their own.
func openBelow(ctx context.Context, log *eventlog.Log, x *flow.RunInfo) (all []openRow) {
	if x.Turn == nil || x.Runner != "" {
		return nil
	}
	for _, c := range x.Children {
		child, err := flow.Info(ctx, log, c.SessionID)
		if err != nil {
			continue
		}
		open := append(openWork(&child), openBelow(ctx, log, &child)...)
		if len(open) == 0 {
			open = []openRow{{Kind: openChild, ID: c.SessionID, Name: child.Agent, Seq: c.Seq}}
		}
		for _, row := range open {
			row.ChildSession = cmp.Or(row.ChildSession, c.SessionID)
			if row.Kind != openReview {
				all = append(all, row)
			}
		}
	}
	return all
}

// openWork lists the open work of a session.
func openWork(x *flow.RunInfo) (all []openRow) {
	for _, r := range x.Approvals {
		all = append(all, openRow{Kind: openReview, ID: r.InterruptID, Name: r.Name, Seq: r.Seq, ChildSession: r.SessionID, Until: r.ExpiresAt})
	}
	for _, w := range x.Waits {
		all = append(all, openRow{Kind: openWait, ID: w.WaitID, Name: w.Reason, Seq: w.Seq, Until: w.Until})
	}
	for _, e := range x.Effects {
		row := openRow{Kind: openOutcome, ID: e.Key, Name: e.Name, Seq: e.Seq, Until: e.RetryAt, Class: e.Class}
		switch {
		case !e.RetryAt.IsZero():
			row.Kind = openRetry
		case x.Runner != "" || !unknownOutcome(&e):
			continue // it runs, or will run again
		}
		all = append(all, row)
	}
	for _, in := range x.Inbox {
		all = append(all, openRow{Kind: openInput, ID: in.InputID, Seq: in.Seq, Steer: in.Steer})
	}
	return all
}

// unknownOutcome reports whether an effect that began must not run again by itself.
func unknownOutcome(e *projection.OpenEffect) bool {
	return !e.Inherited && e.RetryAt.IsZero() && (e.Class == event.EffectReconcile || e.Class == event.EffectUnsafeOnce)
}

func (a *app) runs(ctx context.Context, log *eventlog.Log, names []string, only []string, all bool) error {
	rows, err := a.runRows(ctx, log, names, all)
	if err != nil {
		return err
	}
	found := len(rows)
	if len(only) > 0 {
		rows = slices.DeleteFunc(rows, func(r *runRow) bool { return r.Error == "" && !slices.Contains(only, string(r.Status)) })
	}
	if len(rows) == 0 && found > 0 {
		return fmt.Errorf("none of %s fits; logtool agent runs lists them", count(found, "session"))
	}
	if found == 0 {
		a.note("no agent ran in a session of this store; --all lists the other sessions")
		return nil
	}
	if err := printRows(a, rows, func(p *printer) { p.runs(rows) }); err != nil {
		return err
	}
	return runsError(rows)
}

// runRows reads the named sessions, else all sessions that agents ran, or all.
func (a *app) runRows(ctx context.Context, log *eventlog.Log, names []string, all bool) (rows []*runRow, err error) {
	if len(names) == 0 && !all {
		for x, err := range flow.Runs(ctx, log) {
			if err != nil && x.Session == "" {
				return nil, err
			}
			rows = append(rows, newRunRow(ctx, log, &x, err))
		}
	} else {
		ids, err := a.sessions(ctx, log, names, len(names) == 0)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			x, err := flow.Info(ctx, log, id)
			x.Session = id
			rows = append(rows, newRunRow(ctx, log, &x, err))
		}
	}
	slices.SortStableFunc(rows, func(x, y *runRow) int { return y.Since.Compare(x.Since) })
	return rows, ctx.Err()
}

// runsError counts the sessions that cannot be read.
func runsError(rows []*runRow) error {
	damaged := 0
	for _, row := range rows {
		if row.Error != "" {
			damaged++
		}
	}
	return unreadable(damaged)
}

func (p *printer) runs(rows []*runRow) {
	var cells [][]string
	for _, row := range rows {
		open := row.waitsFor(p)
		switch {
		case row.Error != "":
			open = "unreadable: " + clean(strings.Join(strings.Fields(row.Error), " "))
		case open == "" && row.Runner == "" && (row.Status == flow.StatusExpired || row.Status == flow.StatusHibernated):
			open = "the agent to start"
		}
		cells = append(cells, []string{clean(row.Session), cmp.Or(string(row.Status), "-"), cmp.Or(clean(row.Agent), "-"),
			cmp.Or(clean(row.Runner), "-"), p.when(row.Since), cmp.Or(open, "-")})
	}
	p.Print(term.Table{Heading: []string{sessionHeading, "STATUS", "AGENT", "RUNNER", "SINCE", "WAITS FOR"}, Rows: cells, Whole: []string{sessionHeading}})
}

// waitsFor describes what a session waits for, in one line.
func (row *runRow) waitsFor(p *printer) string {
	var ids []string
	for _, x := range row.Open {
		ids = append(ids, x.ID, x.ChildSession)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var all []string
	for _, x := range row.Open {
		words := []string{x.Kind}
		if x.Name != "" {
			words = append(words, brief(x.Name, 40))
		}
		if x.Kind != openRetry {
			words = append(words, clean(abbreviate(x.ID, ids)))
		}
		switch {
		case x.Until.IsZero():
		case x.Kind == openRetry:
			words = append(words, "at "+p.when(x.Until))
		default:
			words = append(words, "until "+p.when(x.Until))
		}
		if x.Steer {
			words = append(words, "for the running turn")
		}
		if x.ChildSession != "" && x.Kind != openReview && x.Kind != openChild {
			words = append(words, "of child "+clean(abbreviate(x.ChildSession, ids)))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "; ")
}
