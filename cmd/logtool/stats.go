package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
)

func (a *app) statsCommand() *cobra.Command {
	var days int
	var c countFlags
	cmd := a.command(&cobra.Command{
		Use:   "stats [SESSION...]",
		Short: "Count sessions, messages, calls, tokens, costs by model, tool, day",
		Long: `Count the events of the store, or of the sessions named, by source (the program
that a session was imported from), by model, by tool and by day of your time zone
(set TZ for another). Orphaned (rewound) events count too. Events that a fork shares
with its parent, or that a copy copied, count once. Bars compare the calls of tools,
and the messages of days. --per prints one table; by tree, a session counts in the
tree of its first ancestor. --model selects the sessions that used a model, and
counts the tokens and costs of that model only.

` + pricesHelp + `

` + whenHelp,
		Example: "  logtool stats --days 7\n  logtool stats --per folder --since 2026-03-01",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if days < 0 {
				return usagef("--days is a number of days, not %d", days)
			}
			if cmd.Flags().Changed("days") && (a.json || c.by != "") {
				return usagef("--json and --per have all days: leave out --days")
			}
			if err := c.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.stats(cmd.Context(), log, args, days, &c) })
		},
	}, traits{section: secRead, verb: "counting", paged: true, content: true, args: []argument{sessionArg, more}})
	cmd.Flags().IntVar(&days, "days", 30, "print the last `n` days with events; 0 prints all")
	c.flags(cmd)
	return cmd
}

func (a *app) stats(ctx context.Context, log *eventlog.Log, args []string, days int, c *countFlags) error {
	ids, err := a.named(ctx, log, args)
	if err != nil {
		return err
	}
	if c.by != "" {
		return a.byGroup(ctx, log, c, ids, func(p *printer, heading string, rows []group, all group) { p.barred(heading, rows, all) })
	}
	var sum stats.Stats
	n, err := c.count(ctx, a, log, ids, func(_ *sessionRow, s *stats.Stats) { sum.Add(*s) })
	if err != nil {
		return err
	}
	err = a.answer(sum, func(p *printer) {
		p.stats(&sum, days)
		p.legend(c.table, sum.Total.Spend)
		p.reported(sum.Total.Reported)
	})
	return cmp.Or(err, leftOut(n.left))
}

// stats prints a table by source, by model, by tool and by day.
func (p *printer) stats(s *stats.Stats, days int) {
	p.tallies("SOURCE", append(sources(s), group{"all", s.Total}))
	if len(s.ByModel) > 0 {
		p.Printf("\n")
		p.spends("MODEL", modelRows(s))
	}
	if len(s.ByTool) > 0 {
		p.Printf("\n")
		p.tools(s.ByTool)
	}
	if len(s.ByDay) > 0 {
		p.Printf("\n")
		p.days(s.ByDay, days)
	}
}

// sources are the tallies by source, the most sessions first.
func sources(s *stats.Stats) (rows []group) {
	for name, t := range s.BySource {
		rows = append(rows, group{cmp.Or(brief(name, 40), "written here"), t})
	}
	slices.SortFunc(rows, func(x, y group) int {
		return cmp.Or(cmp.Compare(y.Sessions, x.Sessions), cmp.Compare(x.Name, y.Name))
	})
	return rows
}

// tallyHeading are the columns of a tally.
var tallyHeading = []string{"SESSIONS", "EVENTS", "MESSAGES", "CALLS", "TIME", "WAITING", "OUTPUT", "COST"}

// tallyDrop are the columns that a narrow terminal does not get, the first one first.
var tallyDrop = []string{"", "EVENTS", "WAITING", "CALLS", "TIME", "OUTPUT", "SESSIONS", "MESSAGES"}

func (p *printer) tallies(heading string, rows []group) {
	t := term.Table{Heading: append([]string{heading}, tallyHeading...), Right: []int{1, 2, 3, 4, 5, 6, 7, 8}, Drop: tallyDrop, Whole: []string{treeHeading}}
	for _, r := range rows {
		t.Rows = append(t.Rows, append([]string{r.Name}, tallyCells(r.Tally)...))
	}
	p.Print(t)
}

// barred prints tallies with bars for their messages. all is the last row, without a bar.
func (p *printer) barred(heading string, rows []group, all ...group) {
	most := int64(0)
	for _, r := range rows {
		most = max(most, r.Messages)
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, append(append([]string{r.Name}, tallyCells(r.Tally)...), p.Paint(term.Cyan, bar(r.Messages, most))))
	}
	for _, r := range all {
		cells = append(cells, append(append([]string{r.Name}, tallyCells(r.Tally)...), ""))
	}
	p.Print(term.Table{Heading: slices.Concat([]string{heading}, tallyHeading, []string{""}), Rows: cells, Right: []int{1, 2, 3, 4, 5, 6, 7, 8},
		Drop: tallyDrop, Whole: []string{treeHeading}})
}

func tallyCells(t stats.Tally) []string {
	return []string{thousands(t.Sessions), thousands(t.Events), thousands(t.Messages), thousands(t.Calls), spell(t.WorkMS), spell(t.WaitMS),
		thousands(t.Usage.OutputTokens), priced(t.Spend)}
}

// spell writes milliseconds in the two largest units.
func spell(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	switch {
	case ms <= 0:
		return "-"
	case d < time.Minute:
		return elapsed(time.Duration(ms) * time.Millisecond)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return thousands(int64(d/time.Hour)) + fmt.Sprintf("h%02dm", d%time.Hour/time.Minute)
}

func modelRows(s *stats.Stats) (rows []spendRow) {
	for _, model := range namesByCost(s.ByModel) {
		rows = append(rows, spendRow{cmp.Or(brief(model, 40), "no model named"), s.ByModel[model]})
	}
	return rows
}

// tools prints the tools, the most calls first.
func (p *printer) tools(tools map[string]stats.ToolTally) {
	names := slices.SortedFunc(maps.Keys(tools), func(x, y string) int {
		return cmp.Or(cmp.Compare(tools[y].Calls, tools[x].Calls), cmp.Compare(x, y))
	})
	most := int64(0)
	for _, t := range tools {
		most = max(most, t.Calls)
	}
	var cells [][]string
	for _, name := range names {
		t := tools[name]
		cells = append(cells, []string{cmp.Or(brief(name, 40), "no tool named"), thousands(t.Calls), thousands(t.Failed),
			thousands(t.Sessions), p.Paint(term.Cyan, bar(t.Calls, most))})
	}
	p.Print(term.Table{Heading: []string{"TOOL", "CALLS", "FAILED", "SESSIONS", ""}, Rows: cells, Right: []int{1, 2, 3}, Drop: []string{""}})
}

// days prints the newest days, oldest first.
func (p *printer) days(days map[string]stats.Tally, n int) {
	names := slices.Sorted(maps.Keys(days))
	earlier := 0
	if n > 0 && len(names) > n {
		earlier = len(names) - n
		names = names[earlier:]
	}
	var rows []group
	for _, name := range names {
		rows = append(rows, group{name, days[name]})
	}
	p.barred("DAY", rows)
	if earlier > 0 {
		p.Printf("%s earlier: --days 0 shows all\n", count(earlier, "day"))
	}
}

// bar draws the share of n in most, in eighths of a character.
func bar(n, most int64) string {
	const width, eighths = 24, "▏▎▍▌▋▊▉"
	if n <= 0 || most <= 0 {
		return ""
	}
	parts := max(1, n*width*8/most)
	line := strings.Repeat("█", int(parts/8))
	if rest := parts % 8; rest > 0 {
		line += string([]rune(eighths)[rest-1])
	}
	return line
}
