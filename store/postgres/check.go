package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
)

// strays counts the events of each key that table sessions lacks.
const strays = `SELECT session, count(*), min(seq), max(seq) FROM events e
	WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.key = e.session) GROUP BY session ORDER BY session`

// Check implements eventlog.Checker. It finds events without a session.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		found, err := s.checkStrays(ctx)
		if err != nil {
			yield(eventlog.Defect{}, fmt.Errorf("check schema %q: %w", s.schema, err))
			return
		}
		for _, d := range found {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// checkStrays finds events without a session.
func (s *Store) checkStrays(ctx context.Context) (found []eventlog.Defect, err error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, strays)
	if err != nil {
		return nil, s.failure(err)
	}
	var key, n, first, last int64
	_, err = pgx.ForEachRow(rows, []any{&key, &n, &first, &last}, func() error {
		found = append(found, eventlog.Defect{Path: eventsPath, Offset: -1, Rule: "stray", Detail: pages.Strays(key, n, first, last)})
		return nil
	})
	return found, s.failure(err)
}
