package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// The first statement of a read returns the row of the session and the first page. The
// later ones read from the head of the first. Seqs are contiguous, so a page is a range of
// seqs: a LIMIT would let the server sort the whole session while it has no statistics.
const (
	sessionColumns = `s.key, s.first, s.head, s.hash`
	firstForward   = `SELECT ` + sessionColumns + `, e.seq, ` + shortLine + ` FROM sessions s LEFT JOIN events e ON e.session = s.key
		AND e.seq BETWEEN greatest($2::bigint, s.first) AND least($3::bigint, s.head, greatest($2::bigint, s.first) + $4::bigint - 1)
		WHERE s.id = $1 ORDER BY e.seq`
	firstBackward = `SELECT ` + sessionColumns + `, e.seq, ` + shortLine + ` FROM sessions s LEFT JOIN events e ON e.session = s.key
		AND e.seq BETWEEN greatest($2::bigint, s.first, least($3::bigint, s.head) - $4::bigint + 1) AND least($3::bigint, s.head)
		WHERE s.id = $1 ORDER BY e.seq DESC`
	nextForward  = `SELECT seq, ` + shortLine + ` FROM events WHERE session = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
	nextBackward = `SELECT seq, ` + shortLine + ` FROM events WHERE session = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq DESC`
	readSession  = `SELECT ` + sessionColumns + ` FROM sessions s WHERE id = $1`
)

// shortLine is the column line, and NULL for a longer line.
const shortLine = `CASE WHEN octet_length(line) <= 8519680 THEN line END`

var errRow = errors.New("a row has a column of the wrong length or value")

// Read implements eventlog.Store. Once pages have their full size, the next page is read
// while the caller consumes the current one.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		c := cursor{store: s, session: session, Position: pages.Position{Backward: r.Backward}, rows: pages.FirstRows}
		if r.Snapshots && r.Backward {
			c.readSnapshots(ctx, r, yield)
			return
		}
		p, err := c.start(ctx, r)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for {
			ahead := c.fetchAhead(ctx, p)
			if !p.Deliver(func(due int64, line []byte) (event.Event, error) { return c.event(ctx, due, line) }, yield) {
				return
			}
			switch {
			case ahead != nil:
				p = <-ahead
			case c.Left() > 0:
				p = c.fetch(ctx)
			default:
				return
			}
		}
	}
}

// sessionRow is a row of table sessions.
type sessionRow struct {
	pages.Session
	hash []byte
}

func (r *sessionRow) columns() []any { return []any{&r.Key, &r.First, &r.Head.Seq, &r.hash} }

// headColumns are the columns of readHead.
func (r *sessionRow) headColumns() []any { return []any{&r.Key, &r.Head.Seq, &r.hash} }

// check completes the row after it was scanned.
func (r *sessionRow) check(session string) error {
	if len(r.hash) != len(r.Head.Hash) || r.First > r.Head.Seq {
		return corrupt(session, "sessions", 0, errRow)
	}
	copy(r.Head.Hash[:], r.hash)
	return nil
}

// cursor is the position of a reader in a session.
type cursor struct {
	store   *Store
	session string
	row     sessionRow
	pages.Position
	rows int64 // of the next page
}

const maxSeq = 1<<63 - 1

// start reads the row of the session and the first page.
func (c *cursor) start(ctx context.Context, r eventlog.Span) (pages.Page, error) {
	pool, err := c.store.pool(ctx)
	if err != nil {
		return pages.Page{}, err
	}
	c.From, c.To = max(r.From, 0), maxSeq
	if r.To > 0 {
		c.To = r.To
	}
	limit := c.rows
	if r.Limit > 0 {
		limit = min(limit, int64(r.Limit))
	}
	query := firstForward
	if c.Backward {
		query = firstBackward
	}
	rows, err := pool.Query(ctx, query, []byte(c.session), c.From, c.To, limit)
	if err != nil {
		return pages.Page{}, c.store.failure(err)
	}
	found, p, err := c.scanFirst(rows)
	if err != nil || !found {
		if err == nil {
			err = fmt.Errorf("read session %q: %w", c.session, eventlog.ErrNotFound)
		}
		return pages.Page{}, err
	}
	if err := c.row.check(c.session); err != nil {
		return pages.Page{}, err
	}
	c.store.history.noteRead(c.session, c.row.Head)
	c.From, c.To = max(c.row.First, c.From), min(c.row.Head.Seq, c.To)
	c.Restrict(r.Limit)
	p.Due, p.Backward = c.Next(), c.Backward
	c.took(ctx, &p, min(limit, c.Left()))
	return p, nil
}

// scanFirst scans the rows of the first statement. found is false if the session is
// missing.
func (c *cursor) scanFirst(rows pgx.Rows) (found bool, p pages.Page, err error) {
	defer rows.Close()
	for rows.Next() {
		found = true
		var seq *int64
		var line []byte
		if err := rows.Scan(append(c.row.columns(), &seq, &line)...); err != nil {
			return true, p, c.store.failure(err)
		}
		if seq != nil {
			p.Lines = append(p.Lines, line)
		}
	}
	return found, p, c.store.failure(rows.Err())
}

// took moves the position after a page, and sets the size of the next one. A page with
// fewer rows than want ends with an error.
func (c *cursor) took(ctx context.Context, p *pages.Page, want int64) {
	n, size := int64(len(p.Lines)), 0
	for _, line := range p.Lines {
		size += len(line)
	}
	c.Advance(len(p.Lines))
	if n > 0 {
		c.rows = min(4*c.rows, pages.MaxRows, max(1, pages.MaxBytes/max(int64(size)/n, 1)))
	}
	if p.Err == nil && n < want {
		p.Err = c.missingRows(ctx)
	}
}

// fetchAhead starts to fetch the page after p if the reader is likely to need it.
func (c *cursor) fetchAhead(ctx context.Context, p pages.Page) <-chan pages.Page {
	if p.Err != nil || c.Left() == 0 || c.rows < pages.MaxRows {
		return nil
	}
	return pages.Ahead(func() pages.Page { return c.fetch(ctx) })
}

// fetch reads the next page.
func (c *cursor) fetch(ctx context.Context) (p pages.Page) {
	p.Due, p.Backward = c.Next(), c.Backward
	want := min(c.rows, c.Left())
	p.Lines, p.Err = c.readPage(ctx, want)
	c.took(ctx, &p, want)
	return p
}

func (c *cursor) readPage(ctx context.Context, want int64) (lines [][]byte, err error) {
	pool, err := c.store.pool(ctx)
	if err != nil {
		return nil, err
	}
	query, from, to := nextForward, c.From, c.From+want-1
	if c.Backward {
		query, from, to = nextBackward, c.To-want+1, c.To
	}
	rows, err := pool.Query(ctx, query, c.row.Key, from, to)
	if err != nil {
		return nil, c.store.failure(err)
	}
	defer rows.Close()
	var seq int64
	for rows.Next() {
		var line []byte
		if err := rows.Scan(&seq, &line); err != nil {
			return lines, c.store.failure(err)
		}
		lines = append(lines, line)
	}
	return lines, c.store.failure(rows.Err())
}

// missingRows is the reason for missing rows: the session was removed, or the table is
// damaged.
func (c *cursor) missingRows(ctx context.Context) error {
	if err := c.remains(ctx); err != nil {
		return err
	}
	return corrupt(c.session, "events", c.Next(), pages.ErrMissing)
}

// remains returns ErrNotFound if the session was removed since the start of the read.
func (c *cursor) remains(ctx context.Context) error {
	var now sessionRow
	found, err := c.store.one(ctx, now.columns(), readSession, []byte(c.session))
	if err != nil || found && now.Key == c.row.Key {
		return err
	}
	return fmt.Errorf("read session %q: the session was removed during the read: %w", c.session, eventlog.ErrNotFound)
}

// event parses the line of seq due. It uses no field that fetch changes.
func (c *cursor) event(ctx context.Context, due int64, line []byte) (event.Event, error) {
	if err := c.store.usable(ctx); err != nil {
		return event.Event{}, err
	}
	e, err := pages.Parse(c.session, due, line, corrupt)
	if err == nil && !c.row.Describes(&e) {
		return e, c.mismatch(ctx, due)
	}
	return e, err
}

// mismatch is the error for a session row that is inconsistent with the events; nil if
// the row changed in the meantime.
func (c *cursor) mismatch(ctx context.Context, due int64) error {
	var now sessionRow
	found, err := c.store.one(ctx, now.columns(), readSession, []byte(c.session))
	if err == nil && found {
		err = now.check(c.session)
	}
	if err == nil && found && now.Session == c.row.Session {
		err = corrupt(c.session, "sessions", due, pages.ErrEnds)
	}
	return err
}

func corrupt(session, table string, seq int64, cause error) error {
	return &eventlog.CorruptError{Session: session, Path: "table " + table, Offset: -1, Seq: seq, Cause: cause}
}
