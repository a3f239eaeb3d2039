package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
)

const (
	readSession  = `SELECT key, first, head FROM sessions WHERE id = ?`
	readForward  = `SELECT seq, line FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`
	readBackward = `SELECT seq, line FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC LIMIT ?`
	findRow      = `SELECT key FROM events WHERE session = ? AND seq = ?`
	countKey     = `SELECT count(*) FROM sessions WHERE key = ?`
)

// A page ends at either bound; the first pages are shorter, so that a reader
// that stops early has read little.
const (
	firstPageRows = 64
	maxPageRows   = 1000
	maxPageBytes  = 1 << 20
)

// Read implements eventlog.Store. The head is captured at the start; the
// events are read page by page as they are consumed.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		c, err := s.cursor(ctx, session, r)
		if err != nil {
			yield(eventlog.Event{}, err)
			return
		}
		for c.from <= c.to {
			rows, err := c.page(ctx)
			if !c.deliver(ctx, rows, yield) {
				return
			}
			if err != nil {
				yield(eventlog.Event{}, err)
				return
			}
		}
	}
}

// cursor is where a reader is in a session.
type cursor struct {
	store    *Store
	session  string
	key      int64
	from, to int64 // what is left, inclusive
	backward bool
	rows     int64 // size of the next page
}

// line is a row that was read.
type line struct {
	seq  int64
	text []byte
}

func (s *Store) cursor(ctx context.Context, session string, r eventlog.Span) (*cursor, error) {
	row := make([]driver.Value, 3)
	found := false
	err := s.read(ctx, func(c *conn) (err error) {
		found, err = c.first(row, readSession, session)
		return err
	})
	if err != nil {
		return nil, s.locate(session, "sessions", 0, err)
	}
	if !found {
		return nil, fmt.Errorf("read %q: %w", session, eventlog.ErrNotFound)
	}
	key, ok := row[0].(int64)
	first, ok2 := row[1].(int64)
	head, ok3 := row[2].(int64)
	if !ok || !ok2 || !ok3 {
		return nil, s.corrupt(session, "sessions", 0, errRow)
	}
	c := &cursor{store: s, session: session, key: key, from: max(first, r.From), to: head, backward: r.Backward, rows: firstPageRows}
	c.restrict(r)
	return c, nil
}

// restrict applies the upper bound and the limit; seqs are contiguous.
func (c *cursor) restrict(r eventlog.Span) {
	if r.To > 0 {
		c.to = min(c.to, r.To)
	}
	switch n := int64(r.Limit); {
	case n <= 0 || c.to-c.from < n:
	case c.backward:
		c.from = c.to - n + 1
	default:
		c.to = c.from + n - 1
	}
}

// next is the seq that is due.
func (c *cursor) next() int64 {
	if c.backward {
		return c.to
	}
	return c.from
}

func (c *cursor) advance() {
	if c.backward {
		c.to--
	} else {
		c.from++
	}
}

// deliver parses lines and yields their events; false ends the reading.
func (c *cursor) deliver(ctx context.Context, lines []line, yield func(eventlog.Event, error) bool) bool {
	for _, l := range lines {
		err := ctx.Err()
		var e eventlog.Event
		if err == nil {
			e, err = c.event(ctx, l)
		}
		if err != nil {
			yield(eventlog.Event{}, err)
			return false
		}
		c.advance()
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

// event parses the line that is due.
func (c *cursor) event(ctx context.Context, l line) (eventlog.Event, error) {
	due := c.next()
	if l.seq != due {
		return eventlog.Event{}, c.store.corrupt(c.session, "events", due, errMissing)
	}
	e, err := c.store.parse(c.session, l)
	if err != nil {
		return eventlog.Event{}, c.store.atRow(ctx, c.key, due, err)
	}
	return e, nil
}

var (
	errMissing = errors.New("row is missing")
	errSeq     = errors.New("line and row differ in seq")
)

// parse reads a stored line and compares it with its row.
func (s *Store) parse(session string, l line) (eventlog.Event, error) {
	e, err := eventlog.ParseLine(l.text, session)
	if err == nil && e.Seq != l.seq {
		err = errSeq
	}
	var newer *eventlog.VersionError
	if errors.As(err, &newer) {
		return eventlog.Event{}, fmt.Errorf("session %q, seq %d: %w", session, l.seq, err)
	}
	if err != nil {
		return eventlog.Event{}, s.corrupt(session, "events", l.seq, err)
	}
	return e, nil
}

// page reads the next rows. With an error come the rows before it.
func (c *cursor) page(ctx context.Context) (lines []line, err error) {
	want := min(c.rows, c.to-c.from+1)
	c.rows = min(4*c.rows, maxPageRows)
	full := false
	err = c.store.read(ctx, func(conn *conn) (err error) {
		lines, full, err = c.fill(conn, lines[:0], want)
		return err
	})
	if err != nil {
		return lines, c.store.locate(c.session, "events", c.after(lines), err)
	}
	if !full && int64(len(lines)) < want {
		return lines, c.shortage(ctx, c.after(lines))
	}
	return lines, nil
}

// fill reads rows up to either bound of a page; full means that it was bytes.
func (c *cursor) fill(conn *conn, lines []line, want int64) (_ []line, full bool, err error) {
	query := readForward
	if c.backward {
		query = readBackward
	}
	rows, err := conn.query(query, c.key, c.from, c.to, want)
	if err != nil {
		return lines, false, err
	}
	size := 0
	row := make([]driver.Value, 2)
	for !full && err == nil {
		if err = rows.Next(row); err != nil {
			break
		}
		seq, _ := row[0].(int64)
		text, _ := row[1].([]byte)
		lines = append(lines, line{seq, text})
		size += len(text)
		full = size >= maxPageBytes
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, full, errors.Join(err, rows.Close())
}

// after is the seq due after lines.
func (c *cursor) after(lines []line) int64 {
	if c.backward {
		return c.to - int64(len(lines))
	}
	return c.from + int64(len(lines))
}

// shortage says why rows are missing: the session was removed meanwhile, or
// the table is damaged.
func (c *cursor) shortage(ctx context.Context, due int64) error {
	row := make([]driver.Value, 1)
	err := c.store.read(ctx, func(conn *conn) error {
		_, err := conn.first(row, countKey, c.key)
		return err
	})
	if err != nil {
		return c.store.locate(c.session, "sessions", 0, err)
	}
	if row[0] == driver.Value(int64(0)) {
		return fmt.Errorf("read %q: removed meanwhile: %w", c.session, eventlog.ErrNotFound)
	}
	return c.store.corrupt(c.session, "events", due, errMissing)
}

// locate makes damage that SQLite reports a CorruptError; other errors pass.
func (s *Store) locate(session, table string, seq int64, err error) error {
	if isDamage(err) {
		return s.corrupt(session, table, seq, err)
	}
	return err
}

func (s *Store) corrupt(session, table string, seq int64, cause error) error {
	where := fmt.Sprintf("%s: table %s", filepath.Base(s.path), table)
	return &eventlog.CorruptError{Session: session, Path: where, Offset: -1, Seq: seq, Cause: cause}
}

// atRow adds the rowid of a damaged event to its error, if it can be found.
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
