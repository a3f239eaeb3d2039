package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/regular"
)

const (
	// SQLite's check stops after 20 messages.
	integrity = `PRAGMA integrity_check(20)`
	strays    = `SELECT session, count(*), min(seq), max(seq) FROM events WHERE session NOT IN (SELECT key FROM sessions) GROUP BY session`
)

// Check implements eventlog.Checker. It reports special files that have the name of a lock file
// of the store, runs SQLite's integrity check, finds events
// without a session, checks up to 500 events against the text index, and names triggers and
// tables of other programs. The checks run in parallel.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		checks := []func(context.Context, *conn) ([]eventlog.Defect, error){s.checkIntegrity, s.checkStrays, s.checkIndex, s.checkForeign}
		defects, errs := make([][]eventlog.Defect, len(checks)), make([]error, len(checks))
		run := func(i int) {
			errs[i] = s.read(ctx, func(c *conn) (err error) {
				defects[i], err = checks[i](ctx, c)
				return err
			})
		}
		var running sync.WaitGroup
		for i := range checks {
			running.Go(func() { run(i) })
		}
		running.Wait()
		found := s.checkFileNames()
		for i := range checks {
			if errors.Is(errs[i], eventlog.ErrLocked) {
				run(i) // on a full disk, a connection locks the others out
			}
			err := errs[i]
			if found = append(found, defects[i]...); isDamage(err) {
				found = append(found, s.fileDefect("sqlite", err.Error()))
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

func (s *Store) fileDefect(rule, detail string) eventlog.Defect {
	return eventlog.Defect{Path: filepath.Base(s.path), Offset: -1, Rule: rule, Detail: detail}
}

// checkFileNames reports named pipes, folders and other special files that have the name of a
// lock file beside the database.
func (s *Store) checkFileNames() (found []eventlog.Defect) {
	for _, suffix := range []string{"-lock", "-lease"} {
		if special := (*regular.Error)(nil); errors.As(regular.Check(s.path+suffix), &special) {
			found = append(found, eventlog.Defect{Path: special.Path, Offset: -1, Rule: "file", Detail: "the store has a lock file of this name, and this is a " + special.Kind()})
		}
	}
	return found
}

// checkIntegrity runs SQLite's integrity check on the whole file. It may take long;
// the check stops when ctx ends.
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
			found = append(found, s.fileDefect("sqlite", text))
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
		found = append(found, s.fileDefect("stray", pages.Strays(row[0], row[1], row[2], row[3])))
	}, 4, strays)
	return found, err
}

const (
	sampleRow  = `SELECT session, seq, ` + shortLine + ` FROM events WHERE key >= ? AND key <= ? ORDER BY key LIMIT 1`
	hasGram    = `SELECT count(*) FROM search WHERE search MATCH ? AND rowid = ?`
	maxSamples = 500 // events
)

// checkIndex checks that the text index has the text of some events. It reads in one
// transaction: an erasure removes rows from the index and a later transaction adds
// them again.
func (s *Store) checkIndex(ctx context.Context, c *conn) (found []eventlog.Defect, err error) {
	if err := c.run("BEGIN"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.run("ROLLBACK")) }()
	row := make([]driver.Value, 1)
	switch has, err := c.first(row, findSearch); {
	case err != nil:
		return nil, err
	case !has:
		return append(found, s.fileDefect("index", "the text index is missing: rebuild it with logtool store gc --reindex")), nil
	}
	state, err := readIndexState(c)
	if err != nil {
		return nil, err
	}
	if state.rules != indexRules {
		return nil, nil
	}
	missing, looked := 0, 0
	for key := int64(1); key <= state.watermark; key += max(1, state.watermark/maxSamples) {
		has, err := s.isIndexed(ctx, c, key, state.watermark)
		if err != nil {
			return nil, err
		}
		if looked++; !has {
			missing++
		}
	}
	if missing > 0 {
		found = append(found, s.fileDefect("index", fmt.Sprintf("the text index lacks the text of %d of %d checked events: searches miss events; rebuild the index with logtool store gc --reindex", missing, looked)))
	}
	return found, nil
}

// isIndexed reports whether the index has the text of the first event with at least
// this key.
func (s *Store) isIndexed(ctx context.Context, c *conn, key, watermark int64) (bool, error) {
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
	sample := sampleOf(text)
	id, ok := docOf(session, seq)
	if err != nil || sample == "" || !ok {
		return true, nil // an unread blob has the text, or there is no text
	}
	count := make([]driver.Value, 1)
	_, err = c.first(count, hasGram, sample, id)
	return count[0] == driver.Value(int64(1)), err
}
