package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/transcript"
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
and has no runner; the agent continues it when it starts, after a listed outcome is
reconciled), failed, aborted or finished.
RUNNER is the living process that has the session, also between two turns. WAITS FOR
lists open reviews, waits, effects and inputs, with the beginnings of ids:
  review TOOL ID    logtool agent approve, deny or answer; (what is asked), whole with --json
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

func (a *app) runs(ctx context.Context, log *eventlog.Log, names []string, only []string, all bool) error {
	rows, err := a.runRows(ctx, log, names, all)
	if err != nil {
		return err
	}
	found := len(rows)
	if len(only) > 0 {
		rows = slices.DeleteFunc(rows, func(r *answers.Run) bool { return r.Error == "" && !slices.Contains(only, string(r.Status)) })
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
func (a *app) runRows(ctx context.Context, log *eventlog.Log, names []string, all bool) (rows []*answers.Run, err error) {
	if len(names) == 0 && !all {
		catalog := a.catalog(log, anySummary())
		defer catalog.Flush(ctx)
		for x, err := range answers.Runs(ctx, log, catalog) {
			if err != nil && x.Session == "" {
				return nil, err
			}
			rows = append(rows, answers.NewRun(ctx, log, &x, err))
		}
	} else {
		ids, err := a.sessions(ctx, log, names, len(names) == 0)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			x, err := flow.Info(ctx, log, id)
			x.Session = id
			rows = append(rows, answers.NewRun(ctx, log, &x, err))
		}
	}
	slices.SortStableFunc(rows, func(x, y *answers.Run) int { return y.Since.Compare(x.Since) })
	return rows, ctx.Err()
}

// runsError counts the sessions that cannot be read.
func runsError(rows []*answers.Run) error {
	damaged := 0
	for _, row := range rows {
		if row.Error != "" {
			damaged++
		}
	}
	return unreadable(damaged)
}

func (p *printer) runs(rows []*answers.Run) {
	var cells [][]string
	for _, row := range rows {
		open := p.waitsFor(row)
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
func (p *printer) waitsFor(row *answers.Run) string {
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
		if x.Kind != answers.OpenRetry {
			words = append(words, clean(abbreviate(x.ID, ids)))
		}
		if asked := transcript.Join(oneLineArguments(x.Arguments), x.Prompt); asked != "" {
			words = append(words, "("+brief(asked, 60)+")")
		}
		switch {
		case x.Until.IsZero():
		case x.Kind == answers.OpenRetry:
			words = append(words, "at "+p.when(x.Until))
		default:
			words = append(words, "until "+p.when(x.Until))
		}
		if x.Steer {
			words = append(words, "for the running turn")
		}
		if x.ChildSession != "" && x.Kind != answers.OpenReview && x.Kind != answers.OpenChild {
			words = append(words, "of child "+clean(abbreviate(x.ChildSession, ids)))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "; ")
}
