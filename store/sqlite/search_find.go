package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/pages"
)

// The cross joins make SQLite read the rows in the order of the list.
const (
	readSearched     = `SELECT seq, ` + shortLine + ` FROM json_each(?) CROSS JOIN events ON session = ? AND seq = value`
	readSearchedKeys = `SELECT seq, ` + shortLine + ` FROM json_each(?) CROSS JOIN events ON events.key = value + ? WHERE +session = ? AND +seq = value`
	readOffsets      = `SELECT key - seq FROM events WHERE session = ? AND seq IN (?, ?)`
)

// finder reads the events of a session that the index found.
type finder struct {
	store *Store
	one   *sessionPlan
	seqs  []int64 // seqs still to read, newest first
	rows  int     // size of the next page
}

// events yields the events, newest first.
func (f *finder) events(ctx context.Context, yield func(event.Event, error) bool) {
	for len(f.seqs) > 0 {
		p := f.fetch(ctx)
		for more := true; more; {
			ahead := f.fetchAhead(ctx, p)
			if !f.deliver(p, yield) {
				return
			}
			if more = ahead != nil; more {
				p = <-ahead
			}
		}
	}
}

// foundPage is a page of lines, or an error.
type foundPage struct {
	lines []seqLine
	err   error
}

// seqLine is a line and the seq of its row.
type seqLine struct {
	seq  int64
	line []byte
}

// fetchAhead starts to fetch the page after p if the reader is likely to need it. Until
// the page is received, only the fetching goroutine uses the finder's position.
func (f *finder) fetchAhead(ctx context.Context, p foundPage) <-chan foundPage {
	if p.err != nil || len(f.seqs) == 0 || f.rows < pages.MaxRows {
		return nil
	}
	ahead := make(chan foundPage, 1)
	go func() { ahead <- f.fetch(ctx) }()
	return ahead
}

// deliver parses the lines of p and yields their events, or p's error. It returns false
// when reading must stop.
func (f *finder) deliver(p foundPage, yield func(event.Event, error) bool) bool {
	if p.err != nil {
		yield(event.Event{}, p.err)
		return false
	}
	for _, l := range p.lines {
		e, err := pages.Parse(f.one.Session, l.seq, l.line, f.store.corrupt)
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// fetch reads the next page. It skips events that were removed in the meantime.
func (f *finder) fetch(ctx context.Context) (p foundPage) {
	page, left := f.seqs[:min(f.rows, len(f.seqs))], []int64(nil)
	list, err := json.Marshal(page)
	if err != nil {
		return foundPage{err: err}
	}
	err = f.store.read(ctx, func(c *conn) (err error) {
		left = f.seqs[len(page):]
		p.lines, err = f.fill(c, p.lines[:0], page, string(list))
		if n := len(p.lines); err == nil && n > 0 && n < len(page) {
			left = f.seqs[slices.Index(page, p.lines[n-1].seq)+1:]
		}
		return err
	})
	f.seqs, f.rows = left, min(4*f.rows, pages.MaxRows)
	p.err = f.store.locate(f.one.Session, "events", 0, err)
	return p
}

// fill reads the rows of one page, or the first ones up to the byte limit of a page. If
// the keys of the rows differ from their seqs by the same number, fill finds the rows by
// their keys, which takes two thirds of the time.
func (f *finder) fill(c *conn, lines []seqLine, page []int64, list string) ([]seqLine, error) {
	offset, ok, err := f.offset(c, page)
	if err != nil {
		return lines, err
	}
	if ok {
		lines, full, err := readLines(c, lines, readSearchedKeys, list, offset, f.one.key)
		if err != nil || full || len(lines) == len(page) {
			return lines, err
		}
	}
	lines, _, err = readLines(c, lines[:0], readSearched, list, f.one.key)
	return lines, err
}

// offset returns the difference between the keys and the seqs of a page, if it is the
// same at both ends.
func (f *finder) offset(c *conn, page []int64) (offset int64, ok bool, err error) {
	if len(page) < pages.FirstRows {
		return 0, false, nil
	}
	var offsets []int64
	err = c.each(func(row []driver.Value) {
		n, _ := row[0].(int64)
		offsets = append(offsets, n)
	}, 1, readOffsets, f.one.key, page[0], page[len(page)-1])
	ok = len(offsets) == 2 && offsets[0] == offsets[1]
	if ok {
		offset = offsets[0]
	}
	return offset, ok, err
}

// readLines appends the rows of a query for seqs, or row ids of the index, and lines.
// full is true if the lines have reached the byte limit of a page.
func readLines(c *conn, lines []seqLine, query string, args ...driver.Value) (_ []seqLine, full bool, err error) {
	rows, err := c.query(query, args...)
	if err != nil {
		return lines, false, err
	}
	row := make([]driver.Value, 2)
	for size := 0; !full; full = size >= pages.MaxBytes {
		if err = rows.Next(row); err != nil {
			break
		}
		var l seqLine
		l.seq, _ = row[0].(int64)
		l.line, _ = row[1].([]byte)
		lines = append(lines, l)
		size += len(l.line)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, full, finish(rows, err)
}
