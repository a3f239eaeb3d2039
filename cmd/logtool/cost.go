package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

func (a *app) costCommand() *cobra.Command {
	var turns bool
	var c countFlags
	cmd := a.command(&cobra.Command{
		Use:        "cost [SESSION]",
		SuggestFor: []string{"price", "usage"},
		Short:      "Show the cost of one or all sessions, by model, day, folder, tree",
		Long: `Show the cost of a session. Own is the cost of the session's own events, orphaned
(rewound) events included. Events that a fork shares with its parent, or that a
copy copied, are not counted again. Tree is own plus the cost of all sessions below:
its sub-agent runs and its forks. Path is the cost of the events on the active path,
shared events included: do not add up paths. Without SESSION, logtool prints the own
cost of every session, the most expensive first. --per and the flags that narrow
count own events; by tree, a session counts in the tree of its first ancestor. A block
is five hours from the hour of its first answer, as the plans of Claude count.

` + pricesHelp + `

` + whenHelp,
		Example: "  logtool cost order-42 --turns\n  logtool cost --per week --since 30d --model opus",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			one := len(args) == 1 && c.by == "" && !c.isSet()
			if turns && !one {
				return usagef("--turns is for one session: name it, and leave out --per and the flags that narrow")
			}
			if err := c.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error {
				if one {
					return a.cost(cmd.Context(), log, args[0], turns, &c)
				}
				return a.costs(cmd.Context(), log, args, &c)
			})
		},
	}, traits{section: secRead, verb: "counting", paged: true, content: true, args: []argument{sessionArg}})
	cmd.Flags().BoolVar(&turns, "turns", false, "the cost of each turn too")
	c.flags(cmd)
	return cmd
}

func (a *app) cost(ctx context.Context, log *eventlog.Log, name string, turns bool, c *countFlags) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	opts := stats.CostOptions{Prices: c.table}
	cost, err := answers.LoadCost(ctx, log, session, opts)
	if err != nil {
		return err
	}
	return a.answer(cost, func(p *printer) {
		report, tree := &cost.CostReport, &cost.Tree
		p.spends("", costRows(report, tree))
		switch {
		case turns && len(report.Turns) == 0:
			p.Printf("\nno turn used or cost anything\n")
		case turns:
			p.Printf("\n")
			p.spends("TURN", turnRows(report))
		}
		p.legend(c.table, tree.Total.Add(report.Path))
		p.reported(report.Reported)
	})
}

// spendRow is a line of a table of costs.
type spendRow struct {
	name string
	projection.Spend
}

// costRows are the own, path and tree costs of a session.
func costRows(report *stats.CostReport, tree *stats.TreeCost) []spendRow {
	rows := []spendRow{{"own", report.Own}}
	for _, model := range namesByCost(report.ByModel) {
		rows = append(rows, spendRow{"  " + cmp.Or(brief(model, 40), "no model named"), report.ByModel[model]})
	}
	if len(report.ByAgent) > 1 {
		for _, agent := range namesByCost(report.ByAgent) {
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
	return append(rows, spendRow{"tree, " + count(len(tree.Sessions), "session"), tree.Total})
}

// namesByCost are the names of spends, the most expensive first.
func namesByCost(spends map[string]projection.Spend) []string {
	return slices.SortedFunc(maps.Keys(spends), func(x, y string) int { return cmp.Or(listing.CompareCosts(spends[x], spends[y]), cmp.Compare(x, y)) })
}

func turnRows(report *stats.CostReport) (rows []spendRow) {
	for _, t := range report.Turns {
		name := strconv.Itoa(t.Index) + " " + at(t.Seq)
		if t.Orphaned {
			name += " " + orphanedMark
		}
		rows = append(rows, spendRow{name, t.Spend})
	}
	return rows
}

// costs prints the own cost of each session, or the costs by group.
func (a *app) costs(ctx context.Context, log *eventlog.Log, args []string, c *countFlags) error {
	ids, err := a.named(ctx, log, args)
	if err != nil {
		return err
	}
	if c.by != "" {
		return a.byGroup(ctx, log, c, ids, func(p *printer, heading string, groups []group, all group) {
			var rows []spendRow
			for _, g := range groups {
				if g.Name != noBlock || !g.Spend.IsZero() {
					rows = append(rows, spendRow{g.Name, g.Spend})
				}
			}
			p.shares(heading, rows, spendRow{all.Name, all.Spend})
		})
	}
	var spends []stats.SessionSpend
	n, err := c.count(ctx, a, log, ids, func(row *sessionRow, s *stats.Stats) {
		spends = append(spends, stats.SessionSpend{Session: row.ID, Own: s.Total.Spend})
	})
	if err != nil {
		return err
	}
	return cmp.Or(a.printCosts(c, spends), leftOut(n.left))
}

func (a *app) printCosts(c *countFlags, spends []stats.SessionSpend) error {
	slices.SortFunc(spends, func(x, y stats.SessionSpend) int {
		return cmp.Or(listing.CompareCosts(x.Own, y.Own), cmp.Compare(x.Session, y.Session))
	})
	return printRows(a, spends, func(p *printer) {
		short := shortener(p, c.ids)
		t := newSpendTable(sessionHeading)
		var sum projection.Spend
		var empty projection.Spend // of the sessions without a cost and tokens, which come last
		shown := len(spends)
		for shown > 0 && isEmpty(spends[shown-1].Own) {
			shown--
		}
		for i, s := range spends {
			sum = sum.Add(s.Own)
			if i >= shown && len(spends)-shown > mostEmpty {
				empty = empty.Add(s.Own)
				continue
			}
			t.addSpend(short(s.Session), s.Own)
		}
		if !empty.IsZero() || len(spends)-shown > mostEmpty {
			t.addSpend(count(len(spends)-shown, "session")+" without tokens", empty)
		}
		t.addSpend("all "+count(len(spends), "session"), sum)
		p.spendTable(t)
		p.legend(c.table, sum)
	})
}

// mostEmpty is how many sessions without a cost and tokens are listed one by one.
const mostEmpty = 5

// isEmpty reports whether a spend has neither a cost nor tokens.
func isEmpty(s projection.Spend) bool { return s.Cost == 0 && s.Estimate == 0 && s.Usage.IsZero() }

// price writes a cost; - is no cost.
func price(c event.Cost) string {
	if c == 0 {
		return "-"
	}
	return "$" + c.String()
}

// priced writes a cost, its estimate, and the number of answers without both.
func priced(s projection.Spend) string {
	text := spent(s)
	if rest := noPrice(s); rest != "" && (s.Cost > 0 || s.Estimated > 0) {
		text += ", " + rest
	}
	return text
}

// spent writes a cost and its estimate; - is neither.
func spent(s projection.Spend) string {
	switch {
	case s.Estimate == 0:
		return price(s.Cost)
	case s.Cost == 0:
		return guess(s)
	}
	return price(s.Cost) + ", " + guess(s)
}

// guess writes an estimate; - is no estimate.
func guess(s projection.Spend) string { return cmp.Or(transcript.Estimate(s), "-") }

// noPrice counts the answers without a cost and an estimate, and the answers without
// tokens.
func noPrice(s projection.Spend) string {
	var words []string
	if n := s.Unpriced - s.Estimated; n > 0 {
		words = append(words, thousands(n)+" unpriced")
	}
	if s.Unknown > 0 {
		words = append(words, thousands(s.Unknown)+" without tokens")
	}
	return strings.Join(words, ", ")
}

// legend says where estimates come from, if the spend has one.
func (p *printer) legend(table *prices.Table, s projection.Spend) {
	if s.Estimate == 0 {
		return
	}
	newest := ""
	for _, source := range table.Sources {
		newest = max(newest, source.Date)
	}
	p.Printf("\n%s\n", p.Paint(term.Dim, p.Fit("~ estimated with list prices up to "+newest)))
}

// reported prints the costs that the programs computed themselves, if the log has them.
func (p *printer) reported(cost event.Cost) {
	if cost > 0 {
		p.Printf("%s\n", p.Paint(term.Dim, p.Fit(cost.String()+" as the programs computed it")))
	}
}

// spends prints a table of costs.
func (p *printer) spends(heading string, rows []spendRow) {
	t := newSpendTable(heading)
	for _, r := range rows {
		t.addSpend(r.name, r.Spend)
	}
	p.spendTable(t)
}

// shares prints a table of costs, with a bar in each row and a row for all.
func (p *printer) shares(heading string, rows []spendRow, all spendRow) {
	t := newSpendTable(heading)
	most := int64(0)
	for _, r := range rows {
		most = max(most, int64(r.Cost.Add(r.Estimate)))
	}
	for _, r := range rows {
		t.addSpend(r.name, r.Spend, p.Paint(term.Cyan, bar(int64(r.Cost.Add(r.Estimate)), most)))
	}
	t.addSpend(all.name, all.Spend)
	p.spendTable(t)
}

// The headings of columns with ids.
const (
	sessionHeading = "SESSION"
	treeHeading    = "TREE"
)

// spendTable is a table of costs.
type spendTable struct {
	term.Table
	estimated, shares bool
}

func newSpendTable(heading string) *spendTable {
	return &spendTable{Table: term.Table{
		Heading: []string{heading, "COST", "ESTIMATE", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "ANSWERS", "", shareHeading},
		Right:   []int{1, 2, 3, 4, 5, 6, 7},
		Whole:   []string{sessionHeading, treeHeading},
		Drop:    []string{shareHeading, "CACHE WRITE", "ANSWERS", "CACHE READ", "INPUT", "OUTPUT", ""},
	}}
}

// shareHeading is the heading of bars.
const shareHeading = "SHARE"

// addSpend adds a row, with a bar in tables of shares.
func (t *spendTable) addSpend(name string, s projection.Spend, bar ...string) {
	u := s.Usage
	t.estimated, t.shares = t.estimated || s.Estimate > 0, t.shares || len(bar) > 0
	t.Add([]string{name, price(s.Cost), guess(s), thousands(u.InputTokens), thousands(u.CacheReadTokens),
		thousands(u.CacheWriteTokens), thousands(u.OutputTokens), thousands(s.Responses), noPrice(s), strings.Join(bar, "")})
}

func (p *printer) spendTable(t *spendTable) {
	if !t.estimated {
		t.Remove("ESTIMATE")
	}
	if !t.shares {
		t.Remove(shareHeading)
	}
	p.Print(t.Table)
}
