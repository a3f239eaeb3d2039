package listing

import (
	"context"
	"errors"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
)

// Reader reads the sessions of rows, as far as a listing needs them.
type Reader struct {
	Log     *eventlog.Log
	Catalog *stats.Catalog
	// Progress is called before n sessions are read. It returns a function for each of them,
	// and one for the end. Nil shows no progress.
	Progress func(n int) (step, end func())
	// Keep is called with each row that Summaries has filled; nil is not.
	Keep func(*Row, *stats.Summary)
	// Lean says that Choose keeps in the rows what it needs to order them, and nothing else of the
	// sessions that it reads: Summaries reads the sessions that a page shows again.
	Lean bool

	step, end func()
	judge     func(*Row) // of a lean Choose; nil for none
}

// verdict is the decision of a lean Choose on a row.
type verdict int8

const (
	undecided verdict = iota
	chosen
	rejected
)

// lean calls f so that each row that f reads is judged and forgotten at once.
func (x *Reader) lean(q *Query, f func() error) error {
	if x.Lean {
		x.judge = func(row *Row) {
			row.verdict = rejected
			if q.matches(row) {
				row.verdict = chosen
			}
			row.Content = nil
		}
		defer func() { x.judge = nil }()
	}
	return f()
}

// Begin counts n sessions until End, also those of later calls.
func (x *Reader) Begin(n int) {
	x.step, x.end = func() {}, func() {}
	if x.Progress != nil {
		x.step, x.end = x.Progress(n)
	}
}

// End ends what Begin began.
func (x *Reader) End() {
	x.end()
	x.step = nil
}

// counting runs f and counts rows, unless an outer call counts.
func (x *Reader) counting(rows []*Row, f func() error) error {
	if x.step == nil {
		x.Begin(len(rows))
		defer x.End()
	}
	return f()
}

// Summaries fills the rows that have no tally yet.
func (x *Reader) Summaries(ctx context.Context, rows []*Row) error {
	unread := slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool { return row.IsRead() })
	fill := func(row *Row, s *stats.Summary) {
		before := row.Program
		if row.Fill(s); x.Keep != nil {
			x.Keep(row, s)
		}
		if x.judge != nil {
			x.judge(row)
			row.Program = before
		}
	}
	return x.counting(unread, func() error { return EachSummary(ctx, x.Catalog, unread, x.step, fill) })
}

// Sources finds the sources of rows without one in the first event.
func (x *Reader) Sources(ctx context.Context, rows []*Row) error {
	later := slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool { return row.Begun || row.IsRead() })
	return x.counting(later, func() error { return EachSummary(ctx, x.Catalog, later, x.step, (*Row).Locate) })
}

// Names finds names for the rows without one.
func (x *Reader) Names(ctx context.Context, rows []*Row) error {
	return x.counting(rows, func() error {
		unnamed := slices.DeleteFunc(slices.Clone(rows), func(row *Row) bool { return row.Content != nil })
		take := func(row *Row, name string) {
			if row.Content = (&Content{Title: name}); x.judge != nil {
				x.judge(row)
			}
		}
		eachName(ctx, x.Catalog, unnamed, take)
		return Each(ctx, rows, x.step, func(row *Row) error {
			if row.Content != nil || row.verdict != undecided {
				return nil
			}
			name, err := nameIn(ctx, x.Log, row.ID)
			if take(row, name); errors.Is(err, eventlog.ErrCorrupt) {
				return err
			}
			return nil
		})
	})
}

// Query selects and orders the sessions of a listing.
type Query struct {
	Filter
	Text  string // a part of the title, in any case
	Sort  string // of Orders
	Limit int    // of sessions; 0 is no limit
	// Long says that the listing shows what Summaries fills.
	Long bool
}

// reads reports whether Choose needs the sums of sessions.
func (q *Query) reads() bool { return q.Model != "" || q.Sort == ByCost || q.Long && q.Text != "" }

// Known takes from the catalog what Choose and a list of the chosen sessions need. It takes no sums
// that only the list needs if there is a limit, or a filter by the program of the first event.
func (q *Query) Known() (known Known) {
	switch {
	case q.reads() || q.Long && q.Limit == 0 && q.Source == "" && q.CWD == "":
		known.Sum = func(row *Row, s *stats.Summary) {
			if q.mayMatch(row) {
				row.Fill(s)
			}
		}
	case !q.Long && (q.Text != "" || q.Limit == 0):
		known.Name = func(row *Row, name string) {
			if q.mayMatch(row) {
				row.Content = &Content{Title: name}
			}
		}
	}
	return known
}

// Choose filters and orders sessions. It reads no more of them than the filters need.
func (q *Query) Choose(ctx context.Context, x *Reader, all []*Row) (rows []*Row, err error) {
	rows = slices.DeleteFunc(slices.Clone(all), func(row *Row) bool { return row.Err() == nil && !q.mayMatch(row) })
	for _, row := range rows {
		row.verdict = undecided
	}
	switch {
	case q.reads():
		err = x.lean(q, func() error { return x.Summaries(ctx, rows) })
	case q.Source != "":
		err = x.Sources(ctx, rows)
	}
	if err == nil && q.Text != "" && !(q.reads() && x.Lean) {
		err = x.lean(q, func() error { return x.Names(ctx, rows) })
	}
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row *Row) bool {
		return row.Err() == nil && (row.verdict == rejected || row.verdict == undecided && !q.matches(row))
	})
	Sort(rows, q.Sort)
	if q.Limit > 0 && len(rows) > q.Limit {
		rows = rows[:q.Limit]
	}
	return rows, nil
}

// mayMatch rejects sessions that need not be read.
func (q *Query) mayMatch(row *Row) bool {
	return q.Has(row.Last()) && (!row.Begun || q.HasOrigin(row))
}

// matches decides on a session once the columns that the filters need are filled.
func (q *Query) matches(row *Row) bool {
	if !q.HasOrigin(row) || !ContainsFold(row.Label()+" "+row.KnownTitle()+" "+row.About(), q.Text) {
		return false
	}
	return q.Model == "" || row.IsRead() && slices.ContainsFunc(row.Models, q.HasModel)
}
