package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
)

func (a *app) costCommand() *cobra.Command {
	var turns bool
	cmd := &cobra.Command{
		Use:   "cost [SESSION]",
		Short: "Say what a session cost: by itself, with all below it, along its path; by model",
		Long: `Say what was spent. Own is what the session's own events cost, rewound ones too;
what a fork shares with its parent, or a copy took over, is not counted again.
Tree is own and that of all sessions below: the runs it started, and its forks.
Path is what led to where the session stands now, shared events too: a view that
is not to be added up. Without SESSION it is the own cost of every session, the
most expensive first.

Costs are what the log says, - where it says none. Answers that used tokens and
have no cost are counted as unpriced: where there are some, a cost is only that of
the others.`,
		Example: "  logtool cost\n  logtool cost order-42 --turns",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if turns && len(args) == 0 {
				return usagef("--turns is of one session: name it")
			}
			return a.reading(func(log *eventlog.Log) error {
				if len(args) == 0 {
					return a.costs(cmd.Context(), log)
				}
				return a.cost(cmd.Context(), log, args[0], turns)
			})
		},
	}
	cmd.Flags().BoolVar(&turns, "turns", false, "by turn too")
	return cmd
}

// costJSON is the cost of a session as cost prints it with --json.
type costRow struct {
	runlog.CostReport `json:",inline"`
	Tree              runlog.TreeCost `json:"tree"`
}

func (a *app) cost(ctx context.Context, log *eventlog.Log, name string, turns bool) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	report, err := runlog.LoadCost(ctx, log, session)
	if err != nil {
		return err
	}
	tree, err := runlog.LoadTreeCost(ctx, log, session)
	if err != nil {
		return err
	}
	p := a.printer()
	if a.json {
		return p.last(costRow{report, tree})
	}
	p.spends("", costRows(&report, &tree))
	switch {
	case turns && len(report.Turns) == 0:
		p.printf("\nno turn used or cost anything\n")
	case turns:
		p.printf("\n")
		p.spends("TURN", turnRows(&report))
	}
	return p.flush()
}

// spendRow is a line of a table of costs.
type spendRow struct {
	name string
	projection.Spend
}

// costRows are the sides from which a cost is seen.
func costRows(report *runlog.CostReport, tree *runlog.TreeCost) []spendRow {
	rows := []spendRow{{"own", report.Own}}
	for _, model := range byCost(report.ByModel) {
		rows = append(rows, spendRow{"  " + cmp.Or(brief(model, 40), "no model named"), report.ByModel[model]})
	}
	if len(report.ByAgent) > 1 {
		for _, agent := range byCost(report.ByAgent) {
			rows = append(rows, spendRow{"  " + cmp.Or(brief(agent, 40), "no agent named"), report.ByAgent[agent]})
		}
	}
	if !report.Orphaned.IsZero() {
		rows = append(rows, spendRow{"  " + orphanedMark, report.Orphaned})
	}
	rows = append(rows, spendRow{"path", report.Path})
	if !report.Inherited.IsZero() {
		rows = append(rows, spendRow{"  inherited", report.Inherited})
	}
	return append(rows, spendRow{"tree, " + count(int64(len(tree.Sessions)), "session"), tree.Total})
}

// byCost orders names by what they cost, the most expensive first.
func byCost(spends map[string]projection.Spend) (names []string) {
	for name := range spends {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(dearer(spends[x], spends[y]), cmp.Compare(x, y)) })
	return names
}

func dearer(x, y projection.Spend) int {
	return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Usage.OutputTokens, x.Usage.OutputTokens))
}

func turnRows(report *runlog.CostReport) (rows []spendRow) {
	for _, t := range report.Turns {
		name := strconv.Itoa(t.Index) + " " + at(t.Seq)
		if t.Orphaned {
			name += " " + orphanedMark
		}
		rows = append(rows, spendRow{name, t.Spend})
	}
	return rows
}

// costs prints the own cost of every session.
func (a *app) costs(ctx context.Context, log *eventlog.Log) error {
	ids, err := a.sessions(ctx, log, nil, true)
	if err != nil {
		return err
	}
	var spends []runlog.SessionSpend
	for _, id := range ids {
		report, err := runlog.LoadCost(ctx, log, id)
		if err != nil {
			return err
		}
		spends = append(spends, runlog.SessionSpend{Session: id, Own: report.Own})
	}
	slices.SortStableFunc(spends, func(x, y runlog.SessionSpend) int { return dearer(x.Own, y.Own) })
	p := a.printer()
	if a.json {
		for _, s := range spends {
			if err := p.value(s); err != nil {
				return err
			}
		}
		return p.flush()
	}
	var rows []spendRow
	var all projection.Spend
	for _, s := range spends {
		rows = append(rows, spendRow{clean(s.Session), s.Own})
		all = all.Add(s.Own)
	}
	p.spends("SESSION", append(rows, spendRow{"all " + count(int64(len(rows)), "session"), all}))
	return p.flush()
}

// price is a cost; - where the log says none.
func price(c event.Cost) string {
	if c == 0 {
		return "-"
	}
	return "$" + c.String()
}

// priced is a cost in a table, with how many answers are not in it.
func priced(s projection.Spend) string {
	if s.Cost == 0 || s.Unpriced == 0 {
		return price(s.Cost)
	}
	return price(s.Cost) + ", " + thousands(int64(s.Unpriced)) + " unpriced"
}

// spends prints a table of costs.
func (p *printer) spends(heading string, rows []spendRow) {
	var cells [][]string
	for _, r := range rows {
		u := r.Usage
		unpriced := ""
		if r.Unpriced > 0 {
			unpriced = thousands(int64(r.Unpriced)) + " unpriced"
		}
		cells = append(cells, []string{r.name, price(r.Cost), thousands(u.InputTokens), thousands(u.CacheReadTokens),
			thousands(u.CacheWriteTokens), thousands(u.OutputTokens), thousands(int64(r.Responses)), unpriced})
	}
	p.table([]string{heading, "COST", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "ANSWERS", ""}, cells, 1, 2, 3, 4, 5, 6)
}
