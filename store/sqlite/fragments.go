package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	scanSession = `SELECT key, first, head FROM sessions NOT INDEXED WHERE id = ?`
	nextSession = `SELECT session, ` + shortLine + ` FROM events WHERE session > ? ORDER BY session, seq LIMIT 1`
	lowestSeq   = `SELECT seq FROM events WHERE session = ? ORDER BY seq LIMIT 1`
	readRows    = `SELECT key, seq, ` + shortLine + ` FROM events WHERE session = ? AND seq >= ? ORDER BY seq` + limitRows
)

// Fragments implements eventlog.Salvager. Every row is a fragment, and so is every
// missing row. Where SQLite reports damage, Fragments searches for each row through
// the index and through the table.
func (s *Store) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		v := salvage{store: s, session: session, path: filepath.Base(s.path) + ": table events", yield: yield}
		err := v.open(ctx)
		if err == nil {
			err = v.run(ctx)
		}
		if err == nil {
			err = v.missing(ctx, v.head+1)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Fragment{}, fmt.Errorf("salvage session %q: %w", session, err))
		}
	}
}

var (
	_ eventlog.Salvager = (*Store)(nil)

	// errStop ends an iteration early. It is not reported.
	errStop = errors.New("stop")
)

// salvage reads the rows of a damaged session in the order of their seqs.
type salvage struct {
	store   *Store
	session string
	path    string
	yield   func(eventlog.Fragment, error) bool

	key    int64
	listed bool  // the session's row is readable
	head   int64 // seq of the newest event at the start; 0 if unknown
	next   int64 // lowest seq not reported yet
	due    bool  // next is certain to exist
	rows   int64 // size of the last page
	damage error // the first damage found in the file
}

// record is a row of table events, or the error of reading the row.
type record struct {
	key, seq int64
	line     []byte
	err      error
}

// open finds the session's key through the index, through the table, or through the
// session's events.
func (v *salvage) open(ctx context.Context) error {
	err := v.store.read(ctx, func(c *conn) error {
		row := make([]driver.Value, 3)
		found, err := c.first(row, readSession, v.session)
		if err == nil && !found {
			found, err = c.first(row, scanSession, v.session)
		}
		if v.listed = err == nil && found; v.listed {
			v.key, _ = row[0].(int64)
			v.next, v.due = row[1].(int64)
			v.head, _ = row[2].(int64)
			return v.rewind(c)
		}
		if isDamage(err) {
			v.damage = err
			found, err = v.findByEvents(c)
		}
		if err == nil && !found {
			err = eventlog.ErrNotFound
		}
		return err
	})
	return v.store.locate(v.session, "sessions", 0, err)
}

// rewind moves next to the session's lowest seq if the session's row has no valid
// first seq or a later one.
func (v *salvage) rewind(c *conn) error {
	row := make([]driver.Value, 1)
	found, err := c.first(row, lowestSeq, v.key)
	if isDamage(err) {
		return nil // reading the rows finds the damage again
	}
	v.due = v.due && v.next >= 1
	if lowest, ok := row[0].(int64); found && ok && (!v.due || lowest < v.next) {
		v.next = lowest
	}
	return err
}

// findByEvents finds the key whose first event is an event of the session.
func (v *salvage) findByEvents(c *conn) (found bool, err error) {
	row := []driver.Value{int64(0), nil}
	for {
		if found, err = c.first(row, nextSession, row[0]); err != nil || !found {
			return false, err
		}
		v.key, _ = row[0].(int64)
		line, _ := row[1].([]byte)
		if _, err := event.Parse(line, v.session); err == nil {
			return true, nil
		}
	}
}

func (v *salvage) run(ctx context.Context) error {
	for {
		page, more, err := v.page(ctx)
		for _, r := range page {
			if err := v.emit(ctx, r); err != nil {
				return err
			}
		}
		if isDamage(err) {
			return v.sweepDamage(ctx, err)
		}
		if err != nil || !more {
			return err
		}
	}
}

// page reads the next rows in order. more is false after the last row.
func (v *salvage) page(ctx context.Context) (page []record, more bool, err error) {
	v.rows = min(max(4*v.rows, pages.FirstRows), pages.MaxRows)
	err = v.store.read(ctx, func(c *conn) error {
		page = page[:0]
		rows, err := c.query(readRows, v.key, v.next, v.rows)
		if err != nil {
			return err
		}
		size := 0
		row := make([]driver.Value, 3)
		for size < pages.MaxBytes {
			if err = rows.Next(row); err != nil {
				break
			}
			var r record
			r.key, _ = row[0].(int64)
			r.seq, _ = row[1].(int64)
			r.line, _ = row[2].([]byte)
			page = append(page, r)
			size += len(r.line)
		}
		more = err == nil || int64(len(page)) == v.rows
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return finish(rows, err)
	})
	return page, more, err
}

// emit yields the missing rows before r, and then r.
func (v *salvage) emit(ctx context.Context, r record) error {
	if err := v.missing(ctx, r.seq); err != nil {
		return err
	}
	f := eventlog.Fragment{Path: v.path, Offset: -1, Seq: r.seq, Err: r.err}
	if r.err == nil {
		f.Bytes = int64(len(r.line)) + 1
		f.Event, f.Err = v.parse(r.line)
	}
	if f.Err != nil {
		f.Path = fmt.Sprintf("%s, rowid %d", v.path, r.key)
	}
	if v.head > 0 && r.seq > v.head {
		f.Seq = 0 // seq is beyond the head, so only the line can name the event
	}
	v.next, v.due = r.seq+1, true
	return v.yieldFragment(ctx, f)
}

// parse parses a line of any session.
func (v *salvage) parse(line []byte) (event.Event, error) {
	if line == nil {
		return event.Event{}, pages.ErrLongLine
	}
	e, err := event.Parse(line, v.session)
	if err == nil {
		return e, nil
	}
	if other, wrong := event.Parse(line, ""); wrong == nil {
		return other, nil
	}
	return e, err
}

func (v *salvage) yieldFragment(ctx context.Context, f eventlog.Fragment) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !v.yield(f, nil) {
		return errStop
	}
	return nil
}

// maxMissing bounds the number of consecutive missing rows that are reported one by
// one. A damaged seq can leave a gap of any size.
const maxMissing = 10_000

// missing yields a fragment for each missing row before seq, up to the session's head.
func (v *salvage) missing(ctx context.Context, seq int64) error {
	if v.head > 0 {
		seq = min(seq, v.head+1)
	}
	if !v.due || v.next >= seq {
		return nil
	}
	if err := v.present(ctx); err != nil {
		return err
	}
	cause := v.damage
	if cause == nil {
		cause = pages.ErrMissing
	}
	for v.next = max(v.next, seq-maxMissing); v.next < seq; v.next++ {
		if err := v.yieldFragment(ctx, eventlog.Fragment{Path: v.path, Offset: -1, Seq: v.next, Err: cause}); err != nil {
			return err
		}
	}
	return nil
}

// present returns ErrNotFound if the session was removed since the start.
func (v *salvage) present(ctx context.Context) error {
	if !v.listed {
		return nil
	}
	row := make([]driver.Value, 1)
	err := v.store.read(ctx, func(c *conn) error {
		_, err := c.first(row, countKey, v.key)
		return err
	})
	if err == nil && row[0] == driver.Value(int64(0)) {
		return fmt.Errorf("the session was removed during the read: %w", eventlog.ErrNotFound)
	}
	if isDamage(err) {
		return nil
	}
	return err
}
