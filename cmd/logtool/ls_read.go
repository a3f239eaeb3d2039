package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
)

// rowBatch is the number of sessions that are read together.
const rowBatch = 256

// each runs f for the readable rows, in parallel. An error becomes the error of the row.
func each(ctx context.Context, rows []*sessionRow, step func(), f func(*sessionRow) error) error {
	var all sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, row := range rows {
		if row.err() != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil {
				if err := f(row); err != nil {
					row.fail(err)
				}
				step()
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// eachSummary calls use with the summary of each readable row, in the order of the rows.
// An error becomes the error of the row.
func eachSummary(ctx context.Context, c *stats.Catalog, rows []*sessionRow, step func(), use func(*sessionRow, *stats.Summary)) error {
	for batch := range slices.Chunk(rows, rowBatch) {
		var sessions []stats.Listed
		for _, row := range batch {
			if row.err() == nil {
				sessions = append(sessions, stats.Listed{Session: row.ID, Head: row.Head})
			}
		}
		all, err := c.Load(ctx, sessions)
		if err != nil {
			return err
		}
		for _, row := range batch {
			if row.err() != nil {
				continue
			}
			if err := all[0].Err; err != nil {
				row.fail(err)
			} else {
				use(row, &all[0])
			}
			all = all[1:]
			step()
		}
	}
	return nil
}

// reading reads the sessions of rows for a command.
type reading struct {
	app     *app
	log     *eventlog.Log
	catalog *stats.Catalog
	step    func()
}

// begin makes the progress line count to n sessions, until end.
func (x *reading) begin(n int) { x.step = x.app.steps(n) }

func (x *reading) end() {
	x.app.progress.Say(nil)
	x.step = nil
}

// counting runs f and counts rows, unless an outer call counts.
func (x *reading) counting(rows []*sessionRow, f func() error) error {
	if x.step == nil {
		x.begin(len(rows))
		defer x.end()
	}
	return f()
}

// summaries fills the rows that have no tally yet.
func (x *reading) summaries(ctx context.Context, rows []*sessionRow) error {
	unread := slices.DeleteFunc(slices.Clone(rows), func(row *sessionRow) bool { return row.isRead() })
	return x.counting(unread, func() error { return eachSummary(ctx, x.catalog, unread, x.step, (*sessionRow).fill) })
}

// sources finds the sources of rows without one in the first event.
func (x *reading) sources(ctx context.Context, rows []*sessionRow) error {
	later := slices.DeleteFunc(slices.Clone(rows), func(row *sessionRow) bool { return row.begun })
	return x.counting(later, func() error { return eachSummary(ctx, x.catalog, later, x.step, (*sessionRow).locate) })
}

// names finds names for the rows without one.
func (x *reading) names(ctx context.Context, rows []*sessionRow) error {
	return x.counting(rows, func() error {
		return each(ctx, rows, x.step, func(row *sessionRow) error {
			if row.content == nil {
				title, err := nameIn(ctx, x.log, row.ID)
				if row.content = (&content{Title: title}); errors.Is(err, eventlog.ErrCorrupt) {
					return err
				}
			}
			return nil
		})
	})
}

// fill takes the columns of ls --long from a summary.
func (row *sessionRow) fill(s *stats.Summary) {
	t := &s.Total
	row.content = &content{Title: cmp.Or(onOneLine(s.Title), onOneLine(s.Input)), tally: &tally{
		Messages: t.Messages, Calls: t.Calls, Turns: t.Turns, Cost: t.Cost, Usage: t.Usage, Unpriced: t.Unpriced, Orphaned: s.Orphaned,
		Estimate: t.Estimate, Estimated: t.Estimated,
		Models: slices.Sorted(maps.Keys(s.ByModel)),
	}}
	row.locate(s)
}

// locate takes the program from a summary.
func (row *sessionRow) locate(s *stats.Summary) {
	row.program = &program{cmp.Or(s.Source, row.Source), cmp.Or(s.Agent, row.Agent), cmp.Or(s.CWD, row.CWD)}
}

// sessionName collects the name of a session from its events.
type sessionName struct {
	title string // the newest title
	text  string // the first text from outside
}

// name is the title, else the first text.
func (n *sessionName) name() string { return cmp.Or(n.title, n.text) }

// add reads the next event of the session.
func (n *sessionName) add(e *event.Event) {
	if s, ok, err := event.Decode[event.Session](e); ok && err == nil {
		n.title = cmp.Or(onOneLine(s.Title), n.title)
	}
	if n.text == "" {
		n.text = onOneLine(stats.InputText(e))
	}
}

// nameEvents is how many events readName reads at each end of a session.
const nameEvents = 32

// readName finds the name of a session. Unreadable events end the search.
func readName(ctx context.Context, log *eventlog.Log, session string) string {
	name, _ := nameIn(ctx, log, session) // the reader of the session reports the error
	return name
}

// nameIn finds the name of a session: the title in the newest events, else the first text in
// the oldest events.
func nameIn(ctx context.Context, log *eventlog.Log, session string) (string, error) {
	var n sessionName
	events, spilled := 0, false
	for e, err := range log.Read(ctx, session, eventlog.Last(nameEvents).Own().Bare()) {
		if err != nil {
			return n.name(), err
		}
		n.add(&e)
		events++
		_, _, away := e.Spilled()
		spilled = spilled || away
	}
	if n.title != "" || events < nameEvents && !spilled {
		return n.name(), nil
	}
	n.text, events = "", 0
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			return n.name(), err
		}
		if events == nameEvents {
			break
		}
		n.add(&e)
		events++
	}
	return n.name(), nil
}
