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
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/runlog/stats"
)

// countFlags are the flags of cost and stats: what to count, the groups of the counts, and
// the prices for estimates.
type countFlags struct {
	all bool // also sessions that have the state of a program
	filter
	priceFlag
	by string // a value of groupings; empty for the tables of the command
}

// The values of --per.
const (
	byDay     = "day"
	byWeek    = "week"
	byMonth   = "month"
	byBlock   = "block"
	byModel   = "model"
	bySource  = "source"
	byFolder  = "folder"
	bySession = "session"
	byTree    = "tree"
)

var groupings = []string{byDay, byWeek, byMonth, byBlock, byModel, bySource, byFolder, bySession, byTree}

func (c *countFlags) flags(cmd *cobra.Command) {
	c.filter.flags(cmd, "events", "the answers of models")
	cmd.Flags().StringVar(&c.by, "per", "", "one table per "+strings.Join(groupings, ", "))
	completeFlag(cmd, "per", groupings...)
	stateFlag(cmd, &c.all)
	c.priceFlag.flag(cmd)
}

func (c *countFlags) check(now time.Time) error {
	if c.by != "" && !slices.Contains(groupings, c.by) {
		return usagef("--per is one of %s, not %q", strings.Join(groupings, ", "), c.by)
	}
	c.byTree = c.by == byTree
	if err := c.filter.check(now); err != nil {
		return err
	}
	return c.read()
}

// counts is the result of counting sessions.
type counts struct {
	sessions int           // that were counted
	left     []*sessionRow // unreadable sessions, with their errors
}

// count calls use with the counts of each session that the filter selects; ids restricts
// them, unless it is nil. With a time or a model, sessions without a part in it are left
// out. It is an error if none is left.
func (c *countFlags) count(ctx context.Context, a *app, log *eventlog.Log, ids []string, use func(*sessionRow, *stats.Stats)) (n counts, err error) {
	opts := stats.Options{Days: time.Local, Since: c.Since, Until: c.Until, Model: c.modelFilter(), Prices: c.table, Hours: c.by == byBlock}
	catalog := a.catalog(log, stats.CatalogOptions{Options: opts})
	defer catalog.Flush(ctx)
	var known listing.Known
	if ids == nil && !c.isSet() && !c.byTree {
		known.Sum = func(row *sessionRow, s *stats.Summary) {
			row.Counted = c.by != byFolder || row.Kind() != fork.KindFork // a fork has the folder of its parent
			if row.Counted && (c.all || !row.State) {
				n.sessions++
				use(row, &s.Stats)
			}
		}
	}
	rows, err := listing.Read(ctx, catalog, a.bound, known)
	if err == nil {
		rows, err = c.selected(ctx, a, log, ids, rows)
	}
	if err != nil {
		return n, err
	}
	rows = slices.DeleteFunc(rows, func(row *sessionRow) bool { return row.Counted || ids == nil && !c.all && row.State })
	step := a.steps(len(rows))
	defer a.progress.Say(nil)
	for _, row := range rows {
		if row.Err() != nil {
			row.Fail(fmt.Errorf("count session %q: %w", row.ID, row.Err()))
		}
	}
	all := len(rows)
	err = listing.EachSummary(ctx, catalog, rows, step, func(row *sessionRow, s *stats.Summary) {
		if c.isSet() && s.Total.Events == 0 || c.Model != "" && len(s.ByModel) == 0 {
			return
		}
		n.sessions++
		use(row, &s.Stats)
	})
	if err != nil {
		return n, err
	}
	n.left = slices.DeleteFunc(rows, func(row *sessionRow) bool { return row.Err() == nil })
	switch {
	case len(ids) == 1 && len(n.left) == 1:
		return n, n.left[0].Err()
	case c.isSet() && n.sessions+len(n.left) == 0:
		return n, c.nothing(all, nil)
	}
	return n, nil
}

// leftOut is the error for sessions that cannot be read.
func leftOut(rows []*sessionRow) error {
	if len(rows) == 0 {
		return nil
	}
	return fmt.Errorf("%s left out: %w", count(len(rows), "session"), rows[0].Err())
}

// group is a row of a table with --per.
type group struct {
	Name        string `json:"name"`
	stats.Tally `json:",inline"`
}

// grouped sums counts by the value of --per.
type grouped map[string]stats.Tally

func (g grouped) add(parts map[string]stats.Tally) {
	for name, t := range parts {
		g[name] = g[name].Add(t)
	}
}

// groups are the sums: days, weeks, months and blocks in order, all others with the most expensive
// first.
func (c *countFlags) groups(sums grouped) (groups []group) {
	names := slices.Sorted(maps.Keys(sums))
	if !slices.Contains([]string{byDay, byWeek, byMonth, byBlock}, c.by) {
		slices.SortStableFunc(names, func(x, y string) int { return listing.CompareCosts(sums[x].Spend, sums[y].Spend) })
	}
	for _, name := range names {
		groups = append(groups, group{name, sums[name]})
	}
	return groups
}

// split is the counts of one session by name.
func (c *countFlags) split(row *sessionRow, s *stats.Stats) map[string]stats.Tally {
	switch c.by {
	case byDay:
		return s.ByDay
	case byWeek:
		return periods(s.ByDay, func(day time.Time) string {
			year, week := day.ISOWeek()
			return fmt.Sprintf("%04d-W%02d", year, week)
		})
	case byMonth:
		return periods(s.ByDay, func(day time.Time) string { return day.Format("2006-01") })
	case byModel:
		models := map[string]stats.Tally{}
		for model, spend := range s.ByModel {
			models[model] = stats.Tally{Sessions: 1, Spend: spend}
		}
		return models
	case bySource:
		return s.BySource
	case byFolder:
		return map[string]stats.Tally{row.CWD: s.Total}
	case bySession:
		return map[string]stats.Tally{row.ID: s.Total}
	}
	return map[string]stats.Tally{cmp.Or(c.roots[row.ID], row.ID): s.Total}
}

// periods are the tallies of the days by the name of their week or month. A session counts
// once in each.
func periods(days map[string]stats.Tally, nameOf func(day time.Time) string) map[string]stats.Tally {
	sums := map[string]stats.Tally{}
	for day, t := range days {
		name := stats.Undated
		if at, err := time.Parse(time.DateOnly, day); err == nil {
			name = nameOf(at)
		}
		sum := sums[name].Add(t)
		sum.Sessions = 1
		sums[name] = sum
	}
	return sums
}

// rootsOf is the first ancestor of each session in the store: the root of its tree.
func rootsOf(rows []*sessionRow) map[string]string {
	roots := make(map[string]string, len(rows))
	for _, row := range rows {
		root := row
		for n := len(rows); n > 0; n-- { // a damaged store may have a cycle
			parent := listing.Find(rows, root.Parent)
			if parent == nil || root.Kind() == fork.KindRoot {
				break
			}
			if root = parent; roots[root.ID] != "" {
				root = listing.Find(rows, roots[root.ID])
				break
			}
		}
		roots[row.ID] = root.ID
	}
	return roots
}

// groupName is the name of a group in a table.
func (c *countFlags) groupName(name string, short func(id string) string) string {
	switch {
	case name != "" && c.by == byTree:
		return short(name)
	case name != "":
		return clean(name)
	case c.by == byModel:
		return "no model named"
	case c.by == bySource:
		return "written here"
	}
	return "no folder named"
}

// byGroup counts sessions and prints the table of --per. print adds the columns of the
// command, and a row for all.
func (a *app) byGroup(ctx context.Context, log *eventlog.Log, c *countFlags, ids []string, print func(p *printer, heading string, rows []group, all group)) error {
	sums := grouped{}
	var hours []map[string]stats.Tally // of each session, for blocks
	n, err := c.count(ctx, a, log, ids, func(row *sessionRow, s *stats.Stats) {
		if c.by == byBlock {
			hours = append(hours, s.ByHour)
			return
		}
		sums.add(c.split(row, s))
	})
	if err != nil {
		return err
	}
	if c.by == byBlock {
		sums = blocks(hours)
	}
	groups := c.groups(sums)
	err = printRows(a, groups, func(p *printer) {
		short := shortener(p, c.ids)
		named := make([]group, 0, len(groups))
		sum := group{Name: "all"}
		for _, g := range groups {
			sum.Tally = sum.Tally.Add(g.Tally)
			named = append(named, group{c.groupName(g.Name, short), g.Tally})
		}
		sum.Sessions = n.sessions
		print(p, strings.ToUpper(c.by), named, sum)
		p.legend(c.table, sum.Spend)
	})
	return cmp.Or(err, leftOut(n.left))
}

// shortener abbreviates ids on a terminal. ids are all ids of the store, sorted.
func shortener(p *printer, ids []string) func(id string) string {
	if !p.Terminal {
		return clean
	}
	return func(id string) string { return clean(abbreviate(id, ids)) }
}
