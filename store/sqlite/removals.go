package sqlite

import (
	"context"
	"database/sql/driver"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// Table removals has the marks of removed sessions. The first removal creates it.
const (
	hasRemovals  = `SELECT 1 FROM sqlite_schema WHERE name = 'removals'`
	makeRemovals = `CREATE TABLE IF NOT EXISTS removals (mark TEXT PRIMARY KEY) WITHOUT ROWID`
	putRemoval   = `INSERT OR IGNORE INTO removals (mark) VALUES (?)`
	listRemovals = `SELECT mark FROM removals`
)

var _ eventlog.RemovalKeeper = (*Store)(nil)

// PutRemovals implements eventlog.RemovalKeeper.
func (s *Store) PutRemovals(ctx context.Context, marks []string) error {
	return wrap("mark removed sessions", s.write(ctx, removing(marks), true))
}

// removing adds marks of removed sessions.
type removing []string

func (r removing) apply(w *writer) error {
	if len(r) == 0 {
		return nil
	}
	if err := w.conn.run(makeRemovals); err != nil {
		return err
	}
	for _, mark := range r {
		if _, err := w.conn.exec(putRemoval, mark); err != nil {
			return err
		}
	}
	return nil
}

func (removing) unknown(cause error) error { return cause }

// Removals implements eventlog.RemovalKeeper.
func (s *Store) Removals(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var marks []string
		err := s.read(ctx, func(c *conn) error {
			marks = nil
			row := make([]driver.Value, 1)
			if found, err := c.first(row, hasRemovals); !found || err != nil {
				return err
			}
			return c.each(func(row []driver.Value) {
				if mark, ok := row[0].(string); ok {
					marks = append(marks, mark)
				}
			}, 1, listRemovals)
		})
		if err != nil {
			yield("", wrap("read the marks of removed sessions", err))
			return
		}
		for _, mark := range marks {
			if !yield(mark, nil) {
				return
			}
		}
	}
}
