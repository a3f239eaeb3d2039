package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
)

// lsOptions select and order the sessions that ls lists.
type lsOptions struct {
	long  bool
	sort  string
	limit int

	text string
	idle string
	all  bool
	filter
	priceFlag
}

func (a *app) lsCommand() *cobra.Command {
	var l lsOptions
	cmd := a.command(&cobra.Command{
		Use:        "ls",
		SuggestFor: []string{"lst", "list", "dir", "ll", "session", "sessions"},
		Short:      "List the sessions, newest activity first",
		Long: `List the sessions of the store. ls reads the first and the last events of each.
TITLE is the newest title in these events, else the beginning of the first user
message. The label of a fork is shown before its title.

--long reads whole sessions, and later only those that have changed. It finds all
titles and adds turns, messages, tokens, cost, and the number of orphaned (rewound)
events. If an answer has no cost in the log, ~ marks the list price of its tokens.
SOURCE is the program that a session was imported from, FORKS the number of
its forks, and FROM its own origin: a fork, a run or a copy of SESSION@SEQ. Events
that a fork shares with its parents are not counted again. Sessions that only have the
state of a program are listed with --all, as is convlog:store, the removals and holds.

` + whenHelp + ` Both bound the
last activity of a session; --idle 90d is --until 90d.`,
		Example: "  logtool ls --long --since 7d --source codex --sort cost --limit 10",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(a.now()); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.ls(cmd.Context(), log, &l) })
		},
	}, traits{section: secRead, verb: "reading", paged: true, content: true})
	flags := cmd.Flags()
	flags.BoolVarP(&l.long, "long", "l", false, "read each session: its latest title, turns, messages, tokens, cost, size")
	flags.StringVar(&l.sort, "sort", listing.ByActivity, "order: activity, events or cost (the most first), or id")
	completeFlag(cmd, "sort", listing.Orders...)
	limitFlag(cmd, &l.limit, 0, "list the first `n` only; 0 lists all")
	flags.StringVar(&l.text, "text", "", "only sessions with this text in their title, in any case")
	flags.StringVar(&l.idle, "idle", "", "only sessions without activity for this `age`, for example 90d")
	stateFlag(cmd, &l.all)
	l.priceFlag.flag(cmd)
	l.filter.flags(cmd, "sessions with their last activity", "sessions that used a model (ls reads them)")
	return cmd
}

func (l *lsOptions) check(now time.Time) (err error) {
	if !slices.Contains(listing.Orders, l.sort) {
		return usagef("--sort is one of %s, not %q", strings.Join(listing.Orders, ", "), l.sort)
	}
	if l.limit < 0 {
		return usagef("--limit is a number of sessions, not %d", l.limit)
	}
	if l.idle != "" {
		if _, ok := listing.ParseAgo(l.idle); !ok {
			return usagef("--idle is an age (36h, 90d, 12w), not %q", l.idle)
		}
		if l.until != "" {
			return usagef("--idle %s is --until %s: give one of them", l.idle, l.idle)
		}
		l.until = l.idle
	}
	if err := l.filter.check(now); err != nil {
		return err
	}
	return l.read()
}

func (a *app) ls(ctx context.Context, log *eventlog.Log, l *lsOptions) error {
	if done, err := a.lsNewest(ctx, log, l); done || err != nil {
		return err
	}
	x := a.reader(log, a.catalog(log, summaries(l.table)))
	defer x.Catalog.Flush(ctx)
	query := l.query()
	all, err := listing.Read(ctx, x.Catalog, a.bound, query.Known())
	if err != nil {
		return err
	}
	ids, listed := listing.IDs(all), all
	if !l.all {
		listed = listing.WithoutState(all)
	}
	rows, err := query.Choose(ctx, x, listed)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if err := l.nothing(len(listed), listed); err != nil {
			return err
		}
	}
	if len(listed) == 0 {
		defer a.note("no sessions yet: %s", a.howToBegin())
	}
	clear(all) // printed rows need no memory
	clear(listed)
	return l.print(ctx, a, x, rows, ids)
}

// lsNewest lists the newest sessions, if the store finds them without the others.
func (a *app) lsNewest(ctx context.Context, log *eventlog.Log, l *lsOptions) (done bool, err error) {
	rows, ids, ok, err := listing.Newest(ctx, log, l.query(), l.all)
	if err != nil || !ok || len(rows) == 0 { // without a session, the message needs the whole listing
		return false, err
	}
	x := a.reader(log, a.catalog(log, summaries(l.table)))
	defer x.Catalog.Flush(ctx)
	if !a.printer().Terminal {
		return true, l.print(ctx, a, x, rows, nil)
	}
	all, err := ids()
	if err != nil {
		return false, err
	}
	return true, l.print(ctx, a, x, rows, all)
}

// howToBegin says how a store without sessions gets some. A folder with other files may hold
// transcripts.
func (a *app) howToBegin() string {
	at, err := a.place()
	if err == nil && at.kind == kindJSONL {
		for _, pattern := range []string{"*.json", "*.jsonl", "*/*.json", "*/*.jsonl"} {
			if found, _ := filepath.Glob(filepath.Join(at.path, pattern)); len(found) > 0 { // the pattern is valid
				return fmt.Sprintf("%s looks like a folder of transcripts: logtool import %s", clean(at.path), shellWord(clean(at.path)))
			}
		}
	}
	return "`logtool import` lists transcripts to import, or name another store with --store"
}

func (l *lsOptions) query() *listing.Query {
	return &listing.Query{Filter: l.Filter, Text: l.text, Sort: l.sort, Limit: l.limit, Long: l.long}
}

// print reads the columns of the sessions, and prints them. ids are all ids of the store,
// sorted. It forgets each row that it has printed.
func (l *lsOptions) print(ctx context.Context, a *app, x *listing.Reader, rows []*sessionRow, ids []string) error {
	p := a.printer()
	t := p.sessions(l.long)
	damaged := 0
	var sum projection.Spend
	read := x.Names
	if l.long {
		read = x.Summaries
	}
	if err := read(ctx, rows); err != nil {
		return err
	}
	for i, row := range rows {
		if row.Damage() != nil {
			damaged++
		}
		sum = sum.Add(row.Spend())
		if !a.json {
			t.Add(cellsOf(row, p, ids, l.long))
		} else if err := p.Value(answers.NewSession(row)); err != nil {
			return err
		}
		rows[i] = nil
	}
	if !a.json {
		p.Print(t)
	}
	if l.long && !a.json {
		p.legend(l.table, sum)
	}
	return cmp.Or(p.Flush(), unreadable(damaged))
}

// unreadable is the error for n sessions that cannot be read; nil for none.
func unreadable(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be read; logtool verify shows all damage", count(n, "session"))
}

// sessions is the table of ls. On a terminal it has the source and the folder.
func (p *printer) sessions(long bool) term.Table {
	t := term.Table{Heading: []string{"ID", "EVENTS", "LAST ACTIVITY", "TITLE"}, Right: []int{1}, Keep: "TITLE", Whole: []string{"ID", "LAST ACTIVITY"}, Ends: []string{"FOLDER"}}
	switch {
	case long:
		t.Heading = []string{"ID", "SOURCE", "EVENTS", "ORPHANED", "TURNS", "MESSAGES", "FORKS", "OUTPUT", "COST", "SIZE", "LAST ACTIVITY", "FROM", "TITLE"}
		t.Right = []int{2, 3, 4, 5, 6, 7, 8, 9}
		t.Drop = []string{"FROM", "SIZE", "ORPHANED", "FORKS", "TURNS", "OUTPUT", "EVENTS", "COST", "MESSAGES", "SOURCE"}
	case p.Terminal:
		t.Heading = []string{"ID", "SOURCE", "FOLDER", "EVENTS", "LAST ACTIVITY", "TITLE"}
		t.Right, t.Drop = []int{3}, []string{"EVENTS", "FOLDER", "SOURCE"}
	}
	return t
}

// cellsOf are the cells of a row. ids are all ids of the store, sorted: on a terminal, ids
// are short.
func cellsOf(row *sessionRow, p *printer, ids []string, long bool) []string {
	title := nameOf(row)
	if err := row.Damage(); err != nil {
		title = "unreadable: " + clean(onOneLine(err.Error()))
	}
	id, source := clean(row.ID), cmp.Or(clean(row.Source), "-")
	if p.Terminal {
		id = clean(abbreviate(row.ID, ids))
		if row.Kind() == fork.KindFork && row.KnownTitle() == "" && !row.Missing { // the description names the parent
			title = strings.Replace(title, clean(row.Parent), clean(abbreviate(row.Parent, ids)), 1)
		}
	}
	switch {
	case !long && p.Terminal:
		return []string{id, source, folderOf(row), thousands(row.Events), p.when(row.Last()), title}
	case !long:
		return []string{id, thousands(row.Events), p.when(row.Last()), title}
	}
	orphaned, turns, messages, output := "-", "-", "-", "-"
	if row.IsRead() {
		t := row.Tally
		orphaned, turns, messages, output = thousands(t.Orphaned), thousands(t.Turns), thousands(t.Messages), thousands(t.Usage.OutputTokens)
	}
	return []string{id, source, thousands(row.Events), orphaned, turns, messages, thousands(int64(row.Forks)),
		output, priced(row.Spend()), size(row.Bytes), p.when(row.Last()), fromOf(row, ids), title}
}

// folderOf is the last name of the folder of a session.
func folderOf(row *sessionRow) string {
	return cmp.Or(brief(row.CWD[strings.LastIndexAny(row.CWD, `/\`)+1:], 20), "-")
}
