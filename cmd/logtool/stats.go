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

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog"
)

func (a *app) statsCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use:   "stats [SESSION...]",
		Short: "Count sessions, messages, calls, tokens and costs: by source, model, tool and day",
		Long: `Count the events of the store, or of the sessions named, by source (the program
that a session was imported from), by model, by tool and by day of your time zone
(set TZ for another). Orphaned (rewound) events count too. Events that a fork shares
with its parent, or that a copy copied, count once. Bars compare the calls of tools,
and the messages of days.`,
		Example: "  logtool stats --days 7",
		Args:    between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if days < 0 {
				return usagef("--days is a number of days, not %d", days)
			}
			if a.json && cmd.Flags().Changed("days") {
				return usagef("--json has all days: leave out --days")
			}
			return a.reading(func(log *eventlog.Log) error { return a.stats(cmd.Context(), log, args, days) })
		},
	}
	cmd.Flags().IntVar(&days, "days", 30, "print the last `n` days with events; 0 prints all")
	return cmd
}

func (a *app) stats(ctx context.Context, log *eventlog.Log, args []string, days int) error {
	ids, err := a.sessions(ctx, log, args, len(args) == 0)
	if err != nil {
		return err
	}
	var all runlog.Stats
	var left []error
	for _, id := range ids {
		s, err := runlog.LoadStats(ctx, log, id, time.Local)
		switch {
		case err == nil:
			all.Add(s)
		case ctx.Err() != nil || len(ids) == 1:
			return err
		default:
			left = append(left, err)
		}
	}
	if err := a.answer(all, func(p *printer) { p.stats(&all, days) }); err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%s left out: %w", count(len(left), "session"), left[0])
}

// stats prints a table by source, by model, by tool and by day.
func (p *printer) stats(s *runlog.Stats, days int) {
	p.tallies("SOURCE", append(sources(s), namedTally{"all", s.Total}))
	if len(s.ByModel) > 0 {
		p.printf("\n")
		p.spends("MODEL", modelRows(s))
	}
	if len(s.ByTool) > 0 {
		p.printf("\n")
		p.tools(s.ByTool)
	}
	if len(s.ByDay) > 0 {
		p.printf("\n")
		p.days(s.ByDay, days)
	}
}

type namedTally struct {
	name string
	runlog.Tally
}

// sources are the tallies by source, the most sessions first.
func sources(s *runlog.Stats) (rows []namedTally) {
	for name, t := range s.BySource {
		rows = append(rows, namedTally{cmp.Or(brief(name, 40), "written here"), t})
	}
	slices.SortFunc(rows, func(x, y namedTally) int {
		return cmp.Or(cmp.Compare(y.Sessions, x.Sessions), cmp.Compare(x.name, y.name))
	})
	return rows
}

func (p *printer) tallies(heading string, rows []namedTally) {
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, append([]string{r.name}, tallyCells(r.Tally)...))
	}
	p.table([]string{heading, "SESSIONS", "EVENTS", "MESSAGES", "CALLS", "OUTPUT", "COST"}, cells, 1, 2, 3, 4, 5, 6)
}

func tallyCells(t runlog.Tally) []string {
	return []string{thousands(t.Sessions), thousands(t.Events), thousands(t.Messages), thousands(t.Calls),
		thousands(t.Usage.OutputTokens), priced(t.Spend)}
}

func modelRows(s *runlog.Stats) (rows []spendRow) {
	for _, model := range namesByCost(s.ByModel) {
		rows = append(rows, spendRow{cmp.Or(brief(model, 40), "no model named"), s.ByModel[model]})
	}
	return rows
}

// tools prints the tools, the most calls first.
func (p *printer) tools(tools map[string]runlog.ToolTally) {
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
			thousands(t.Sessions), p.paint(cyan, bar(t.Calls, most))})
	}
	p.table([]string{"TOOL", "CALLS", "FAILED", "SESSIONS", ""}, cells, 1, 2, 3)
}

// days prints the newest days, oldest first.
func (p *printer) days(days map[string]runlog.Tally, n int) {
	names := slices.Sorted(maps.Keys(days))
	earlier := 0
	if n > 0 && len(names) > n {
		earlier = len(names) - n
		names = names[earlier:]
	}
	most := int64(0)
	for _, name := range names {
		most = max(most, days[name].Messages)
	}
	var cells [][]string
	for _, name := range names {
		t := days[name]
		cells = append(cells, append(append([]string{name}, tallyCells(t)...), p.paint(cyan, bar(t.Messages, most))))
	}
	p.table([]string{"DAY", "SESSIONS", "EVENTS", "MESSAGES", "CALLS", "OUTPUT", "COST", ""}, cells, 1, 2, 3, 4, 5, 6)
	if earlier > 0 {
		p.printf("%s earlier: --days 0 shows all\n", count(earlier, "day"))
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
