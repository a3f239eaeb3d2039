package listing

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
)

// Batch is the number of sessions that are read together.
const Batch = 256

// Each runs f for the readable rows, in parallel. An error becomes the error of the row.
func Each(ctx context.Context, rows []*Row, step func(), f func(*Row) error) error {
	var all sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, row := range rows {
		if row.Err() != nil {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil {
				if err := f(row); err != nil {
					row.Fail(err)
				}
				step()
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// EachSummary calls use with the summary of each readable row, in the order of the catalog.
// An error becomes the error of the row.
func EachSummary(ctx context.Context, c *stats.Catalog, rows []*Row, step func(), use func(*Row, *stats.Summary)) error {
	rows = readable(rows)
	return c.Each(ctx, len(rows), headsOf(rows), func(i int, s *stats.Summary) {
		if s.Err != nil {
			rows[i].Fail(s.Err)
		} else {
			use(rows[i], s)
		}
		step()
	})
}

// spendKey is the part of a spend that orders rows.
type spendKey struct {
	cost   event.Cost
	output int64
}

// Fill takes the title, the counts and the program from a summary.
func (row *Row) Fill(s *stats.Summary) {
	t := &s.Total
	row.Content = &Content{Title: cmp.Or(onOneLine(s.Title), onOneLine(s.Input)), Tally: &Tally{
		Messages: t.Messages, Calls: t.Calls, Turns: t.Turns, Cost: t.Cost, Usage: t.Usage, Unpriced: t.Unpriced, Orphaned: s.Orphaned,
		Estimate: t.Estimate, Estimated: t.Estimated,
		Models: slices.Sorted(maps.Keys(s.ByModel)),
	}}
	for _, t := range s.ByTool {
		row.Failed += t.Failed
	}
	row.spent = spendKey{t.Cost.Add(t.Estimate), t.Usage.OutputTokens}
	row.Locate(s)
}

// Locate takes the program from a summary.
func (row *Row) Locate(s *stats.Summary) {
	if p := (Program{cmp.Or(s.Source, row.Source), cmp.Or(s.Agent, row.Agent), cmp.Or(s.CWD, row.CWD)}); p != *row.Program {
		row.Program = &p
	}
}

// eachName calls use with the name of each readable row that the catalog knows; a nil catalog knows none.
func eachName(ctx context.Context, c *stats.Catalog, rows []*Row, use func(*Row, string)) {
	if c != nil {
		rows = readable(rows)
		c.Names(ctx, len(rows), headsOf(rows), func(i int, name string) { use(rows[i], name) })
	}
}

// readable are the rows without an error.
func readable(rows []*Row) []*Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool { return row.Err() != nil })
}

func headsOf(rows []*Row) func(i int) (string, event.Head) {
	return func(i int) (string, event.Head) { return rows[i].ID, rows[i].Head }
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

// onOneLine joins the lines of a text.
func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// NameEvents is the number of events that Name reads at each end of a session.
const NameEvents = 32

// Name finds the name of a session. Unreadable events end the search.
func Name(ctx context.Context, log *eventlog.Log, session string) string {
	name, _ := nameIn(ctx, log, session) // the reader of the session reports the error
	return name
}

// nameIn finds the name of a session: the title in the newest events, else the first text in
// the oldest events.
func nameIn(ctx context.Context, log *eventlog.Log, session string) (string, error) {
	var n sessionName
	events, spilled := 0, false
	for e, err := range log.Read(ctx, session, eventlog.Last(NameEvents).Own().Bare()) {
		if err != nil {
			return n.name(), err
		}
		n.add(&e)
		events++
		_, _, away := e.Spilled()
		spilled = spilled || away
	}
	if n.title != "" || events < NameEvents && !spilled {
		return n.name(), nil
	}
	n.text, events = "", 0
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil {
			return n.name(), err
		}
		if events == NameEvents {
			break
		}
		n.add(&e)
		events++
	}
	return n.name(), nil
}
