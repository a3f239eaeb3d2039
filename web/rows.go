package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
)

// rows are the rows of the sessions. It keeps the columns of each session that it has read, and
// reads a session again when the session has changed.
type rows struct {
	log     *eventlog.Log
	zone    *time.Location
	catalog *stats.Catalog

	list sync.Mutex // one listing at a time: it has a row for each session

	mu   sync.Mutex
	kept map[string]*columns
}

// columns are the columns of a session as of its head.
type columns struct {
	head    event.Hash
	content *listing.Content // nil if only recent is kept
	program *listing.Program
	recent  []daySpend
}

// daySpend is the spend of a day.
type daySpend struct {
	day   string
	spend projection.Spend
}

// mostColumns bounds the sessions whose columns are in memory. Of more sessions, the spend of the last
// days is kept only, and the columns are read from the catalog of the store.
const mostColumns = 2000

// recentDays is the number of days whose spend rows keep.
const recentDays = 7

func newRows(log *eventlog.Log, o Options) *rows {
	return &rows{log: log, zone: o.Zone, kept: map[string]*columns{}, catalog: newCatalog(log, o, stats.Options{})}
}

// newCatalog returns a catalog of the log with the zone and the prices of the pages.
func newCatalog(log *eventlog.Log, o Options, opts stats.Options) *stats.Catalog {
	opts.Days, opts.Prices = o.Zone, o.Prices
	return stats.NewCatalog(log, stats.CatalogOptions{Options: opts, Writable: o.Writable})
}

// flush stores the sums of the sessions that a request has read, also if its client has gone.
func flush(ctx context.Context, c *stats.Catalog) { c.Flush(context.WithoutCancel(ctx)) }

// read lists all sessions, with the columns that are known.
func (x *rows) read(ctx context.Context) ([]*listing.Row, error) {
	all, err := listing.Read(ctx, x.catalog, func(int) {}, listing.Known{})
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, row := range all {
		if c := x.kept[row.ID]; c != nil && c.head == row.Head.Hash {
			if c.content != nil {
				row.Remember(c.content, c.program)
			}
		}
	}
	x.forget(len(all), all)
	return all, nil
}

// choose lists the sessions, without those that have the state of a program unless all, and
// those that a query selects, in its order.
func (x *rows) choose(ctx context.Context, reader *listing.Reader, query *listing.Query, all bool) (listed, chosen []*listing.Row, err error) {
	if listed, err = x.read(ctx); err != nil {
		return nil, nil, err
	}
	if !all {
		listed = listing.WithoutState(listed)
	}
	chosen, err = query.Choose(ctx, reader, listed)
	return listed, chosen, err
}

// forget drops the columns of sessions that are removed.
func (x *rows) forget(sessions int, all []*listing.Row) {
	if len(x.kept) <= sessions+sessions/8 {
		return
	}
	kept := make(map[string]*columns, sessions)
	for _, row := range all {
		if c := x.kept[row.ID]; c != nil {
			kept[row.ID] = c
		}
	}
	x.kept = kept
}

// reader reads sessions for a query, and keeps their columns.
func (x *rows) reader() *listing.Reader {
	return &listing.Reader{Log: x.log, Catalog: x.catalog, Keep: x.keep, Lean: true}
}

// keep keeps the columns of a row that was filled.
func (x *rows) keep(row *listing.Row, s *stats.Summary) {
	c := &columns{head: row.Head.Hash, content: row.Content, program: row.Program}
	first := time.Now().In(x.zone).AddDate(0, 0, -recentDays-1).Format(time.DateOnly)
	for day, t := range s.ByDay {
		if day >= first && day != stats.Undated && !t.Spend.IsZero() {
			c.recent = append(c.recent, daySpend{day, t.Spend})
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if before := x.kept[row.ID]; len(x.kept) >= mostColumns && (before == nil || before.content == nil) {
		if c.content, c.program = nil, nil; len(c.recent) == 0 {
			delete(x.kept, row.ID)
			return
		}
	}
	x.kept[row.ID] = c
}

// columns returns the columns of a row that was filled.
func (x *rows) columns(row *listing.Row) *columns {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.kept[row.ID]; c != nil && c.head == row.Head.Hash {
		return c
	}
	return &columns{}
}

// one returns the row of a session, with its columns. If stale is set, they may be of an earlier
// head.
func (x *rows) one(ctx context.Context, session string, stale bool) (*listing.Row, error) {
	row, known, err := x.begin(ctx, session, stale)
	if err == nil && !known {
		err = x.reader().Summaries(ctx, []*listing.Row{row})
	}
	if err != nil {
		return nil, err
	}
	return row, row.Err()
}

// begin returns the row of a session. It has no columns if they are not kept.
func (x *rows) begin(ctx context.Context, session string, stale bool) (row *listing.Row, known bool, err error) {
	info, err := listing.InfoOf(ctx, x.log, session)
	if err != nil {
		return nil, false, err
	}
	if row = listing.NewRow(info, listing.Programs{}); row.Err() != nil {
		return nil, false, row.Err()
	}
	return row, x.known(row, stale), nil
}

// known fills a row with the columns that are kept.
func (x *rows) known(row *listing.Row, stale bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.kept[row.ID]
	if c == nil || c.content == nil || c.head != row.Head.Hash && !stale {
		return false
	}
	row.Remember(c.content, c.program)
	return true
}

// unread are the rows whose spend of the last days is not known.
func (x *rows) unread(rows []*listing.Row) (unread []*listing.Row) {
	for _, row := range rows {
		if !row.IsRead() && x.columns(row).head != row.Head.Hash {
			unread = append(unread, row)
		}
	}
	return unread
}

// weekTime bounds the time that the sum of a week takes. The next request goes on.
const weekTime = 500 * time.Millisecond

// week is the spend of the last seven days. left is the number of sessions that are not in it
// yet.
func (x *rows) week(ctx context.Context, all []*listing.Row) (sum projection.Spend, left int, err error) {
	today := time.Now().In(x.zone)
	first := time.Date(today.Year(), today.Month(), today.Day()-recentDays+1, 0, 0, 0, 0, x.zone)
	var recent []*listing.Row
	for _, row := range all {
		if row.Err() == nil && !row.Last().Before(first) {
			recent = append(recent, row)
		}
	}
	end := time.Now().Add(weekTime)
	for batch := range slices.Chunk(recent, listing.Batch/8) {
		if left > 0 || time.Now().After(end) {
			left += len(x.unread(batch))
			continue
		}
		batch = x.unread(batch)
		if err := x.reader().Summaries(ctx, batch); err != nil {
			return sum, 0, err
		}
		for _, row := range batch {
			row.Content = nil // the rows of a page are read again
		}
	}
	for _, row := range recent {
		for _, d := range x.columns(row).recent {
			if d.day >= first.Format(time.DateOnly) {
				sum = sum.Add(d.spend)
			}
		}
	}
	return sum, left, nil
}
