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
)

const (
	scanSession = `SELECT key, first, head FROM sessions NOT INDEXED WHERE id = ?`
	nextSession = `SELECT session, line FROM events WHERE session > ? ORDER BY session, seq LIMIT 1`
	lowestSeq   = `SELECT seq FROM events WHERE session = ? ORDER BY seq LIMIT 1`
	readRows    = `SELECT key, seq, line FROM events WHERE session = ? AND seq >= ? ORDER BY seq LIMIT ?`
)

// Fragments implements eventlog.Salvager. A row is a fragment, and so is one
// that is missing. Where SQLite finds the file damaged, the rows are looked for
// one by one, by the index and by the table.
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

	// errStop ends a reading without an error.
	errStop = errors.New("stop")
)

// salvage is where somebody who reads on behind damage is.
type salvage struct {
	store   *Store
	session string
	path    string
	yield   func(eventlog.Fragment, error) bool

	key    int64
	listed bool  // the session has a row that can be read
	head   int64 // seq of the newest event at the start; 0 if unknown
	next   int64 // the least seq that comes next
	due    bool  // it is known to come
	rows   int64 // size of the last page
	damage error // of the file, once it was met
}

// record is a row: what it holds, or why that cannot be read.
type record struct {
	key, seq int64
	line     []byte
	err      error
}

// open finds the session by the index, by the table, or by its events.
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
			return v.begin(c)
		}
		if isDamage(err) {
			v.damage = err
			found, err = v.search(c)
		}
		if err == nil && !found {
			err = eventlog.ErrNotFound
		}
		return err
	})
	return v.store.locate(v.session, "sessions", 0, err)
}

// begin goes back to the first row, where the session's own row does not say
// which that is, or a later one.
func (v *salvage) begin(c *conn) error {
	row := make([]driver.Value, 1)
	found, err := c.first(row, lowestSeq, v.key)
	if isDamage(err) {
		return nil // it will be met again
	}
	v.due = v.due && v.next >= 1
	if lowest, ok := row[0].(int64); found && ok && (!v.due || lowest < v.next) {
		v.next = lowest
	}
	return err
}

// search finds the key whose first event is of the session.
func (v *salvage) search(c *conn) (found bool, err error) {
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
			if err := v.give(ctx, r); err != nil {
				return err
			}
		}
		if isDamage(err) {
			return v.around(ctx, err)
		}
		if err != nil || !more {
			return err
		}
	}
}

// page reads the next rows in order; more is true unless they are all.
func (v *salvage) page(ctx context.Context) (page []record, more bool, err error) {
	v.rows = min(max(4*v.rows, firstPageRows), maxPageRows)
	err = v.store.read(ctx, func(c *conn) error {
		page = page[:0]
		rows, err := c.query(readRows, v.key, v.next, v.rows)
		if err != nil {
			return err
		}
		size := 0
		row := make([]driver.Value, 3)
		for size < maxPageBytes {
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

// give yields a row, and before it those that should stand there.
func (v *salvage) give(ctx context.Context, r record) error {
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
		f.Seq = 0 // the session ends before: only the line can say what it is
	}
	v.next, v.due = r.seq+1, true
	return v.pass(ctx, f)
}

// parse reads a line of whatever session.
func (v *salvage) parse(line []byte) (event.Event, error) {
	e, err := event.Parse(line, v.session)
	if err == nil {
		return e, nil
	}
	if other, wrong := event.Parse(line, ""); wrong == nil {
		return other, nil
	}
	return e, err
}

func (v *salvage) pass(ctx context.Context, f eventlog.Fragment) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !v.yield(f, nil) {
		return errStop
	}
	return nil
}

// maxMissing bounds how many rows in a row are said to be missing one by one:
// a damaged seq may leave any gap.
const maxMissing = 10_000

// missing tells of the rows before seq, up to the session's head, that are not
// there.
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
		cause = errMissing
	}
	for v.next = max(v.next, seq-maxMissing); v.next < seq; v.next++ {
		if err := v.pass(ctx, eventlog.Fragment{Path: v.path, Offset: -1, Seq: v.next, Err: cause}); err != nil {
			return err
		}
	}
	return nil
}

// present makes sure that the session was not removed meanwhile.
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
		return fmt.Errorf("removed meanwhile: %w", eventlog.ErrNotFound)
	}
	if isDamage(err) {
		return nil
	}
	return err
}
