package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	readSession  = `SELECT key, first, head FROM sessions WHERE id = ?`
	readEnds     = `SELECT key, first, head, hash FROM sessions WHERE id = ?`
	readForward  = `SELECT ` + shortLine + ` FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq` + limitRows
	readBackward = `SELECT ` + shortLine + ` FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC` + limitRows
	findRow      = `SELECT key FROM events WHERE session = ? AND seq = ?`
	countKey     = `SELECT count(*) FROM sessions WHERE key = ?`
)

// shortLine is the column line, and NULL for a longer line. SQLite finds the length
// without reading the line.
const shortLine = `iif(length(line) <= 8519680, line, NULL)`

// limitRows bounds the rows of a query by a parameter. SQLite compiles a statement again after
// each binding of a plain "LIMIT ?"; the sign prevents it.
const limitRows = ` LIMIT +?`

// Read implements eventlog.Store. Read fixes the head at the start and then reads page
// by page. Once pages have their full size, the next page is read while the caller
// consumes the current one.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if r.Snapshots && r.Backward {
			s.readSnapshots(ctx, session, r, yield)
		} else {
			s.readPages(ctx, session, r, firstRows(r.Limit), yield)
		}
	}
}

// firstRows is the size of the first page of a read with a limit, or without one (0). Many
// readers without a limit need few events: a fork looks for the turn that it is in.
func firstRows(limit int) int64 { return int64(min(max(limit, 16), pages.FirstRows)) }

// readPages yields the events of a read whose first page has at most so many rows.
func (s *Store) readPages(ctx context.Context, session string, r eventlog.Span, rows int64, yield func(event.Event, error) bool) {
	c, err := s.cursor(ctx, session, r)
	if err != nil {
		yield(event.Event{}, err)
		return
	}
	c.rows = rows
	for c.Left() > 0 {
		p := c.fetch(ctx)
		for more := true; more; {
			ahead := c.fetchAhead(ctx, p)
			if !p.Deliver(func(due int64, line []byte) (event.Event, error) { return c.event(ctx, due, line) }, yield) {
				return
			}
			if more = ahead != nil; more {
				p = <-ahead
			}
		}
	}
}

// cursor is the position of a reader in a session.
type cursor struct {
	store   *Store
	session string
	row     pages.Session
	pages.Position
	rows int64 // size of the next page
	line int64 // average bytes of a line of the last page
}

func (s *Store) cursor(ctx context.Context, session string, r eventlog.Span) (*cursor, error) {
	row, err := s.sessionRow(ctx, session)
	if err != nil {
		return nil, err
	}
	c := &cursor{store: s, session: session, row: row, Position: pages.Position{From: max(row.First, r.From), To: row.Head.Seq, Backward: r.Backward}}
	if r.To > 0 {
		c.To = min(c.To, r.To)
	}
	c.Restrict(r.Limit)
	return c, nil
}

// sessionRow reads the row of a session.
func (s *Store) sessionRow(ctx context.Context, session string) (r pages.Session, err error) {
	row := make([]driver.Value, 4)
	found := false
	err = s.read(ctx, func(c *conn) (err error) {
		found, err = c.first(row, readEnds, session)
		return err
	})
	if err != nil {
		return r, s.locate(session, "sessions", 0, err)
	}
	if !found {
		return r, fmt.Errorf("read session %q: %w", session, eventlog.ErrNotFound)
	}
	r, ok := sessionRowOf(row)
	if !ok {
		return r, s.corrupt(session, "sessions", 0, errRow)
	}
	return r, nil
}

// sessionRowOf parses the columns key, first, head and hash.
func sessionRowOf(row []driver.Value) (r pages.Session, ok bool) {
	key, ok := row[0].(int64)
	first, ok2 := row[1].(int64)
	seq, ok3 := row[2].(int64)
	hash, ok4 := row[3].([]byte)
	r = pages.Session{Key: key, First: first, Head: event.Head{Seq: seq}}
	copy(r.Head.Hash[:], hash)
	return r, ok && ok2 && ok3 && ok4 && 1 <= first && first <= seq && len(hash) == len(r.Head.Hash)
}

// event parses the line of seq due. It uses no field that fetch changes.
func (c *cursor) event(ctx context.Context, due int64, line []byte) (event.Event, error) {
	if err := ctx.Err(); err != nil {
		return event.Event{}, err
	}
	e, err := pages.Parse(c.session, due, line, c.store.corrupt)
	if err != nil {
		return event.Event{}, c.store.atRow(ctx, c.row.Key, due, err)
	}
	if !c.row.Describes(&e) {
		return e, c.mismatch(ctx, due)
	}
	return e, nil
}

// mismatch returns the error for a session row that is inconsistent with the events.
// It returns nil if the row changed in the meantime.
func (c *cursor) mismatch(ctx context.Context, due int64) error {
	row, err := c.store.sessionRow(ctx, c.session)
	if err == nil && row == c.row {
		err = c.store.corrupt(c.session, "sessions", due, pages.ErrEnds)
	}
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	return err
}

// fetchAhead starts to fetch the page after p if the reader is likely to need it.
func (c *cursor) fetchAhead(ctx context.Context, p pages.Page) <-chan pages.Page {
	if p.Err != nil || c.Left() == 0 || c.rows < pages.MaxRows {
		return nil
	}
	return pages.Ahead(func() pages.Page { return c.fetch(ctx) })
}

// fetch reads the next page.
func (c *cursor) fetch(ctx context.Context) pages.Page {
	p := pages.Page{Due: c.Next(), Backward: c.Backward}
	want := min(c.rows, c.Left())
	if c.Backward && c.line > 0 {
		want = min(want, max(1, pages.MaxBytes*3/4/c.line)) // so that ascending reads it
	}
	c.rows = min(4*c.rows, pages.MaxRows)
	full := false
	err := c.store.read(ctx, func(conn *conn) (err error) {
		p.Lines, full, err = c.fill(conn, p.Lines[:0], want)
		return err
	})
	c.Advance(len(p.Lines))
	switch {
	case err != nil:
		p.Err = c.store.locate(c.session, "events", c.Next(), err)
	case !full && int64(len(p.Lines)) < want:
		p.Err = c.missingRows(ctx, c.Next())
	}
	return p
}

// fill reads the rows of one page. full is true if the page ended at its byte limit. A page of a
// backward read is read in ascending order and reversed: SQLite searches its tree for each row of a
// descending read.
func (c *cursor) fill(conn *conn, lines [][]byte, want int64) (_ [][]byte, full bool, err error) {
	defer func() { c.line = averageLen(lines) }()
	if !c.Backward {
		return c.query(conn, lines, readForward, c.From, want)
	}
	if lines, _, err = c.query(conn, lines, readForward, c.To-want+1, want); err == nil && int64(len(lines)) == want {
		slices.Reverse(lines)
		return lines, false, nil
	}
	return c.query(conn, lines[:0], readBackward, c.From, want) // rows are missing, damaged or large
}

// averageLen is the average length of lines.
func averageLen(lines [][]byte) (n int64) {
	for _, line := range lines {
		n += int64(len(line))
	}
	return n / max(1, int64(len(lines)))
}

// query reads rows from the seq from on, at most want.
func (c *cursor) query(conn *conn, lines [][]byte, query string, from, want int64) (_ [][]byte, full bool, err error) {
	rows, err := conn.query(query, c.row.Key, from, c.To, want)
	if err != nil {
		return lines, false, err
	}
	size := 0
	row := make([]driver.Value, 1)
	for !full {
		if err = rows.Next(row); err != nil {
			break
		}
		line, _ := row[0].([]byte)
		lines = append(lines, line)
		size += len(line)
		full = size >= pages.MaxBytes
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, full, finish(rows, err)
}

// missingRows returns the reason for missing rows: the session was removed, or the
// table is damaged.
func (c *cursor) missingRows(ctx context.Context, due int64) error {
	if err := c.remains(ctx); err != nil {
		return err
	}
	return c.store.corrupt(c.session, "events", due, pages.ErrMissing)
}

// remains returns ErrNotFound if the session was removed since the start of the read.
func (c *cursor) remains(ctx context.Context) error {
	row := make([]driver.Value, 1)
	err := c.store.read(ctx, func(conn *conn) error {
		_, err := conn.first(row, countKey, c.row.Key)
		return err
	})
	if err != nil {
		return c.store.locate(c.session, "sessions", 0, err)
	}
	if row[0] == driver.Value(int64(0)) {
		return fmt.Errorf("read session %q: the session was removed during the read: %w", c.session, eventlog.ErrNotFound)
	}
	return nil
}

// locate converts damage that SQLite reports into a CorruptError. Other errors stay
// the same.
func (s *Store) locate(session, table string, seq int64, err error) error {
	if isDamage(err) {
		return s.corrupt(session, table, seq, err)
	}
	return err
}

func (s *Store) corrupt(session, table string, seq int64, cause error) error {
	return corruptAt(s.path, session, table, seq, cause)
}

func corruptAt(path, session, table string, seq int64, cause error) error {
	where := fmt.Sprintf("%s: table %s", filepath.Base(path), table)
	return &eventlog.CorruptError{Session: session, Path: where, Offset: -1, Seq: seq, Cause: cause}
}

// atRow adds the rowid of the damaged event to err, if the row exists.
func (s *Store) atRow(ctx context.Context, key, seq int64, err error) error {
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) {
		return err
	}
	row := make([]driver.Value, 1)
	found := false
	lookup := s.read(ctx, func(c *conn) (err error) {
		found, err = c.first(row, findRow, key, seq)
		return err
	})
	if lookup == nil && found {
		damage.Path += fmt.Sprintf(", rowid %v", row[0])
	}
	return damage
}
