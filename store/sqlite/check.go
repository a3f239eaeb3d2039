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
	// SQLite's own check stops after so many messages.
	integrity = `PRAGMA integrity_check(20)`
	strays    = `SELECT session, count(*), min(seq), max(seq) FROM events WHERE session NOT IN (SELECT key FROM sessions) GROUP BY session`
)

// Check implements eventlog.Checker: SQLite checks its pages and indexes, and
// events are found that belong to no session.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		var found []eventlog.Defect
		for _, check := range []func(context.Context, *conn) ([]eventlog.Defect, error){s.checkIntegrity, s.checkStrays} {
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
