package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog/stats"
)

// startRows is the number of sessions that logtool alone lists.
const startRows = 8

// start is logtool alone: the newest sessions, their cost in the last days, and commands to
// go on.
func (a *app) start(ctx context.Context) error {
	at, err := a.place()
	if err != nil {
		return err
	}
	if _, err := os.Stat(at.path); !at.onServer() && errors.Is(err, fs.ErrNotExist) {
		return a.welcome(at)
	}
	a.startProgress("reading")
	return a.reading(func(log *eventlog.Log) error {
		all, err := a.sessionRows(ctx, log)
		if err != nil {
			return err
		}
		if len(listing.WithoutState(all)) == 0 {
			return a.welcome(at)
		}
		return a.overview(ctx, log, all)
	})
}

// welcome says how to fill an empty store.
func (a *app) welcome(at place) error {
	if a.json {
		return nil
	}
	p := a.printer()
	p.Printf("%s\n", p.Fit("No sessions yet in "+clean(at.String())))
	p.goOn([][2]string{
		{a.commandLine("import"), "list the transcripts of other programs on this machine"},
		{a.commandLine("import --known"), "import all of them"},
		{"logtool help", "list the commands"},
	})
	return p.Flush()
}

// overview prints the newest sessions, the week, and commands to go on.
func (a *app) overview(ctx context.Context, log *eventlog.Log, all []*sessionRow) error {
	l := lsOptions{sort: listing.ByActivity, limit: startRows}
	x := a.reader(log, a.catalog(log, summaries(prices.Builtin())))
	defer x.Catalog.Flush(ctx)
	rows, err := l.query().Choose(ctx, x, listing.WithoutState(all))
	if err != nil {
		return err
	}
	ids, newest := listing.IDs(all), rows[0].ID
	damaged := l.print(ctx, a, x, rows, ids)
	week, left, err := a.week(ctx, log)
	if err != nil {
		return err
	}
	err = a.answer(week, func(p *printer) {
		p.Printf("\n%s in the last 7 days, cost: %s\n", count(week.Sessions, "session"), priced(week.Spend))
		p.goOn([][2]string{
			{a.commandLine("show " + shellWord(shortener(p, ids)(newest))), "show the newest session"},
			{a.commandLine("search TEXT"), "find text in all sessions"},
			{"logtool help", "list the commands"},
		})
	})
	return cmp.Or(err, damaged, left)
}

// week is the sum of the last seven days. left is the error for sessions that cannot be read.
func (a *app) week(ctx context.Context, log *eventlog.Log) (sum group, left, err error) {
	sum.Name = "last 7 days"
	c := countFlags{filter: filter{since: "7d"}}
	if err := c.check(a.now()); err != nil {
		return sum, nil, err
	}
	n, err := c.count(ctx, a, log, nil, func(_ *sessionRow, s *stats.Stats) { sum.Tally = sum.Add(s.Total) })
	var nothing *nothingError
	if errors.As(err, &nothing) {
		err = nil
	}
	return sum, leftOut(n.left), err
}

// commandLine is a command on the store of this run.
func (a *app) commandLine(command string) string {
	if a.store == "" {
		return "logtool " + command
	}
	return "logtool --store " + shellWord(shown(a.store)) + " " + command
}

// goOn prints commands to go on with.
func (p *printer) goOn(commands [][2]string) {
	wide := 0
	for _, c := range commands {
		wide = max(wide, columns(c[0]))
	}
	p.Printf("\n")
	for _, c := range commands {
		p.Printf("  %s%s  %s\n", c[0], strings.Repeat(" ", wide-columns(c[0])), p.Paint(term.Dim, c[1]))
	}
}
