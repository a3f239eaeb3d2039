package sqlite

import (
	"context"
	"database/sql/driver"
	"maps"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

const (
	indexForward  = `SELECT seq, key FROM events WHERE session = ? AND seq >= ? ORDER BY seq`
	indexBackward = `SELECT seq, key FROM events WHERE session = ? AND seq >= ? ORDER BY seq DESC`
	tableForward  = `SELECT seq, key, session FROM events NOT INDEXED WHERE key BETWEEN ? AND ? ORDER BY key`
	tableBackward = `SELECT seq, key, session FROM events NOT INDEXED WHERE key BETWEEN ? AND ? ORDER BY key DESC`
	newestKey     = `SELECT seq FROM sqlite_sequence WHERE name = 'events'`
	readRow       = `SELECT ` + shortLine + ` FROM events WHERE key = ?`
)

// sweepDamage emits the remaining rows where pages are damaged. It finds rows through
// the index and through the table.
func (v *salvage) sweepDamage(ctx context.Context, damage error) error {
	v.damage = damage
	w := rowSweep{session: v.key, from: v.next}
	err := v.store.read(ctx, func(c *conn) error {
		w.keys, w.tries = map[int64]int64{}, maxTries
		return w.run(c)
	})
	if err != nil {
		return err
	}
	for _, seq := range slices.Sorted(maps.Keys(w.keys)) {
		if err := v.emitKey(ctx, w.keys[seq], seq); err != nil {
			return err
		}
	}
	if w.whole || v.head > 0 {
		return nil
	}
	// There may be more rows: report damage without an end.
	return v.yieldFragment(ctx, eventlog.Fragment{Path: v.path, Offset: -1, Seq: v.next, Err: damage})
}

// emitKey emits the row with a key.
func (v *salvage) emitKey(ctx context.Context, key, seq int64) error {
	row := make([]driver.Value, 1)
	r := record{key: key, seq: seq}
	err := v.store.read(ctx, func(c *conn) error {
		found, err := c.first(row, readRow, key)
		if r.err = nil; isDamage(err) {
			r.err = err
			return nil
		}
		if err == nil && !found {
			r.err = pages.ErrMissing
		}
		return err
	})
	if err != nil {
		return err
	}
	r.line, _ = row[0].([]byte)
	return v.emit(ctx, r)
}

// maxTries bounds the number of times a damaged range of the table is split.
const maxTries = 2000

// rowSweep finds the rows of a session where pages are damaged.
type rowSweep struct {
	session, from int64
	keys          map[int64]int64 // by seq
	whole         bool            // the index was readable to its end
	tries         int
}

func (w *rowSweep) run(c *conn) error {
	low, err := w.scan(c, 2, indexForward, w.session, w.from)
	if w.whole = err == nil; w.whole || !isDamage(err) {
		return err
	}
	high, err := w.scan(c, 2, indexBackward, w.session, w.from)
	if err != nil && !isDamage(err) {
		return err
	}
	last := int64(1) << 62
	row := make([]driver.Value, 1)
	if found, err := c.first(row, newestKey); err == nil && found {
		last, _ = row[0].(int64)
	}
	if high > 0 {
		last = min(last, high-1)
	}
	return w.table(c, low+1, last)
}

// scan collects rows up to the first unreadable one. It returns the key of the last
// row.
func (w *rowSweep) scan(c *conn, columns int, query string, args ...driver.Value) (last int64, err error) {
	err = c.each(func(row []driver.Value) {
		seq, _ := row[0].(int64)
		last, _ = row[1].(int64)
		if seq >= w.from && (columns == 2 || row[2] == driver.Value(w.session)) {
			w.keys[seq] = last
		}
	}, columns, query, args...)
	return last, err
}

// table collects the rows of a range of keys from both ends. If damage lies between
// the ends, it splits the rest and repeats. The keys of a session increase with its
// seqs.
func (w *rowSweep) table(c *conn, from, to int64) error {
	if from > to || w.tries == 0 {
		return nil
	}
	w.tries--
	last, err := w.scan(c, 3, tableForward, from, to)
	if !isDamage(err) {
		return err
	}
	first, err := w.scan(c, 3, tableBackward, from, to)
	if err != nil && !isDamage(err) {
		return err
	}
	from = max(from, last+1)
	if first > 0 {
		to = min(to, first-1)
	}
	if from >= to {
		return nil
	}
	middle := from + (to-from)/2
	if err := w.table(c, from, middle); err != nil {
		return err
	}
	return w.table(c, middle+1, to)
}
