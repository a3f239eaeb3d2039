package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) lsCommand() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the sessions, newest activity first",
		Long: `List the sessions of the store, from the first and the last events of each. TITLE
is the title that a session was given last, or else what its user said first; the
label of a fork stands before it.

--long reads them whole, also for titles given in between: turns, messages,
tokens, cost, and how many events were rewound (orphaned). SOURCE is the program
that a session was imported from, FORKS counts the sessions forked from one, FROM
is where a session comes from itself: a fork, a run or a copy of SESSION@SEQ. What
a fork shares with its parents is not counted again.

--since and --until take a day (2026-03-01), a time (2026-03-01T09:30), both of
your time zone, or how long ago (90m, 12h, 7d, 2w).`,
		Example: `  logtool ls --since 7d --text parcel
  logtool ls --long --source codex --sort cost --limit 10
  logtool ls --cwd . --model opus`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.ls(cmd.Context(), log, &l) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&l.long, "long", "l", false, "read each session: its latest title, turns, messages, tokens, cost, size")
	flags.StringVar(&l.sort, "sort", sortActivity, "order: activity, events or cost (the most first), or id")
	flags.IntVar(&l.limit, "limit", 0, "list the first `n` only; 0 lists all")
	flags.StringVar(&l.source, "source", "", "only sessions imported from this program, such as claude; none is those written here")
	flags.StringVar(&l.since, "since", "", "only sessions with activity since this day or time")
	flags.StringVar(&l.until, "until", "", "only sessions begun until this day or time, the day included")
	flags.StringVar(&l.text, "text", "", "only sessions with this text in their title, in any case")
	flags.StringVar(&l.model, "model", "", "only sessions that used a model with this text in its name; reads them")
	flags.StringVar(&l.cwd, "cwd", "", "only sessions that ran in this folder, or below it")
	return cmd
}

// The orders of a listing.
const (
	sortActivity = "activity"
	sortID       = "id"
	sortEvents   = "events"
	sortCost     = "cost"
)

var sorts = []string{sortActivity, sortID, sortEvents, sortCost}

func (a *app) ls(ctx context.Context, log *eventlog.Log, l *listing) error {
	var all []*sessionRow
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return err
		}
		all = append(all, newSessionRow(info))
	}
	relate(all)
	inherit(all)
	rows := slices.DeleteFunc(slices.Clone(all), func(row *sessionRow) bool { return row.Error == "" && !l.mayWant(row) })
	if l.reads() {
		if err := readAll(ctx, log, rows); err != nil {
			return err
		}
	} else if err := l.learn(ctx, log, rows); err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row *sessionRow) bool { return row.Error == "" && !l.wants(row) })
	l.order(rows)
	if l.limit > 0 && len(rows) > l.limit {
		rows = rows[:l.limit]
	}
	if err := l.complete(ctx, log, rows); err != nil {
		return err
	}
	if len(rows) == 0 && len(all) > 0 {
		return fmt.Errorf("none of %s fits%s; logtool ls lists them", count(int64(len(all)), "session"), l.sources(all))
	}
	if err := a.printListing(rows, idsOf(all), l.long); err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(a.err, "no sessions yet: `logtool import` shows what can be imported, or name another store with --store")
	}
	return listError(rows)
}

// learn finds what the filters ask for and first events do not tell.
func (l *listing) learn(ctx context.Context, log *eventlog.Log, rows []*sessionRow) error {
	if l.source != "" {
		if err := learnAll(ctx, log, rows); err != nil {
			return err
		}
	}
	if l.text != "" {
		return readNames(ctx, log, rows)
	}
	return nil
}

// sources says which sources there are, as far as is known, where one is asked for.
func (l *listing) sources(rows []*sessionRow) string {
	if l.source == "" {
		return ""
	}
	var all []string
	for _, row := range rows {
		if name := cmp.Or(clean(row.Source), noSource); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return "; their sources are " + strings.Join(all, ", ")
}

// complete finds what is listed of rows, where it is not known yet.
func (l *listing) complete(ctx context.Context, log *eventlog.Log, rows []*sessionRow) error {
	switch {
	case l.long:
		return readAll(ctx, log, rows)
	case l.text != "":
		return nil
	}
	return readNames(ctx, log, rows)
}

// listError says how much could not be read.
func listError(rows []*sessionRow) error {
	broken := 0
	for _, row := range rows {
		if row.Error != "" {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%s cannot be read; logtool verify shows all damage", count(int64(broken), "session"))
	}
	return nil
}

// order sorts rows, equal ones by id.
func (l *listing) order(rows []*sessionRow) {
	slices.SortStableFunc(rows, func(x, y *sessionRow) int {
		most := 0
		switch l.sort {
		case sortActivity:
			most = y.Last.Compare(x.Last)
		case sortEvents:
			most = cmp.Compare(y.Events, x.Events)
		case sortCost:
			most = dearer(x.spend(), y.spend())
		}
		return cmp.Or(most, cmp.Compare(x.ID, y.ID))
	})
}

func (a *app) printListing(rows []*sessionRow, ids []string, long bool) error {
	p := a.printer()
	if a.json {
		for _, row := range rows {
			if err := p.value(row); err != nil {
				return err
			}
		}
		return p.flush()
	}
	heading, right := []string{"ID", "EVENTS", "LAST ACTIVITY", "TITLE"}, []int{1}
	if long {
		heading = []string{"ID", "SOURCE", "EVENTS", "ORPHANED", "TURNS", "MESSAGES", "FORKS", "OUTPUT", "COST", "SIZE", "LAST ACTIVITY", "FROM", "TITLE"}
		right = []int{2, 3, 4, 5, 6, 7, 8, 9}
	}
	var cells [][]string
	for _, row := range rows {
		cells = append(cells, row.cells(p, ids, long))
	}
	p.table(heading, cells, right...)
	return p.flush()
}

// cells are those of a row; ids are those of all sessions, sorted.
func (row *sessionRow) cells(p *printer, ids []string, long bool) []string {
	title := row.called()
	if row.Error != "" {
		title = "unreadable: " + clean(strings.Join(strings.Fields(row.Error), " "))
	}
	if !long {
		return []string{clean(row.ID), thousands(row.Events), p.when(row.Last), title}
	}
	orphaned, turns, messages, output := "-", "-", "-", "-"
	if t := row.tally; t != nil {
		orphaned, turns, messages, output = thousands(t.Orphaned), thousands(t.Turns), thousands(t.Messages), thousands(t.Usage.OutputTokens)
	}
	return []string{clean(row.ID), cmp.Or(clean(row.Source), "-"), thousands(row.Events), orphaned, turns, messages, thousands(row.Forks),
		output, priced(row.spend()), size(row.Bytes), p.when(row.Last), row.from(ids), title}
}
