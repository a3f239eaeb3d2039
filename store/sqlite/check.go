package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

const (
	// SQLite's own check stops after so many messages.
	integrity = `PRAGMA integrity_check(20)`
	strays    = `SELECT session, count(*), min(seq), max(seq) FROM events WHERE session NOT IN (SELECT key FROM sessions) GROUP BY session`
)

// Check implements eventlog.Checker: SQLite checks its pages and indexes, events
// are found that belong to no session, and the index of texts is compared with
// some events that it should have.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		var found []eventlog.Defect
		for _, check := range []func(context.Context, *conn) ([]eventlog.Defect, error){s.checkIntegrity, s.checkStrays, s.checkIndex} {
			var some []eventlog.Defect
			err := s.read(ctx, func(c *conn) (err error) {
				some, err = check(ctx, c)
				return err
			})
			if found = append(found, some...); isDamage(err) {
				found = append(found, s.inFile("sqlite", err.Error()))
			} else if err != nil {
				yield(eventlog.Defect{}, fmt.Errorf("check %s: %w", s.path, err))
				return
			}
		}
		for _, d := range found {
			if !yield(d, nil) {
				return
			}
		}
	}
}

var _ eventlog.Checker = (*Store)(nil)

func (s *Store) inFile(rule, detail string) eventlog.Defect {
	return eventlog.Defect{Path: filepath.Base(s.path), Offset: -1, Rule: rule, Detail: detail}
}

// checkIntegrity has the file checked. That takes long, and ends with ctx.
func (s *Store) checkIntegrity(ctx context.Context, c *conn) (found []eventlog.Defect, err error) {
	rows, err := c.raw.QueryContext(ctx, integrity, nil)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, 1)
	for {
		if err = rows.Next(row); err != nil {
			break
		}
		if text, _ := row[0].(string); text != "ok" {
			found = append(found, s.inFile("sqlite", text))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, finish(rows, err)
}

// checkStrays finds events without a session.
func (s *Store) checkStrays(_ context.Context, c *conn) (found []eventlog.Defect, err error) {
	err = c.each(func(row []driver.Value) {
		found = append(found, s.inFile("stray", fmt.Sprintf("%v events, of seq %v to %v, belong to no session: its row %v in table sessions is missing",
			row[1], row[2], row[3], row[0])))
	}, 4, strays)
	return found, err
}

const (
	sampleRow  = `SELECT session, seq, line FROM events WHERE key >= ? AND key <= ? ORDER BY key LIMIT 1`
	hasGrams   = `SELECT count(*) FROM search WHERE search MATCH ? AND rowid = ?`
	mostSample = 500 // events

	sampleGrams = 24 // of each
)

// checkIndex looks whether the index of texts has what it should have, of some
// events: all at one moment, for what others erase meanwhile leaves the index,
// and is taken in again later.
func (s *Store) checkIndex(ctx context.Context, c *conn) (found []eventlog.Defect, err error) {
	if err := c.run("BEGIN"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.run("ROLLBACK")) }()
	row := make([]driver.Value, 1)
	if has, err := c.first(row, findSearch); err != nil || !has {
		return nil, err
	}
	state, err := readIndexState(c)
	if err != nil {
		return nil, err
	}
	if state.rules != indexRules {
		return nil, nil
	}
	missing, looked := 0, 0
	grams := newGramSet()
	for key := int64(1); key <= state.watermark; key += max(1, state.watermark/mostSample) {
		has, err := s.sampled(ctx, c, grams, key, state.watermark)
		if err != nil {
			return nil, err
		}
		if looked++; !has {
			missing++
		}
	}
	if missing > 0 {
		found = append(found, s.inFile("index", fmt.Sprintf("%d of %d events are not in the index of texts as they should be: searches miss some; logtool gc --reindex makes it anew", missing, looked)))
	}
	return found, nil
}

// sampled reports whether the index has the first event of a key or behind it.
func (s *Store) sampled(ctx context.Context, c *conn, grams *gramSet, key, watermark int64) (bool, error) {
	row := make([]driver.Value, 3)
	found, err := c.first(row, sampleRow, key, watermark)
	if err != nil || !found {
		return true, err
	}
	session, _ := row[0].(int64)
	seq, _ := row[1].(int64)
	line, _ := row[2].([]byte)
	open := func(context.Context, event.Digest) (io.ReadCloser, error) { return nil, eventlog.ErrBlobNotFound }
	text, err := textOf(ctx, line, open)
	words := grams.of(event.Fold(text))
	id, ok := docOf(session, seq)
	if err != nil || words == "" || !ok {
		return true, nil // its text stands elsewhere, or it has none
	}
	if some := strings.Fields(words); len(some) > sampleGrams {
		words = strings.Join(some[:sampleGrams], " ")
	}
	count := make([]driver.Value, 1)
	_, err = c.first(count, hasGrams, words, id)
	return count[0] == driver.Value(int64(1)), err
}
