package postgres

import (
	"context"
	"iter"
)

// Table removals has the marks of removed sessions. A schema of an earlier build lacks the
// table; the first removal creates it.
const (
	makeRemovals = `CREATE TABLE removals (mark text PRIMARY KEY)`
	hasRemovals  = `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid WHERE n.nspname = $1 AND c.relname = 'removals')`
	putRemovals  = `INSERT INTO removals SELECT unnest($1::text[]) ON CONFLICT DO NOTHING`
	listRemovals = `SELECT coalesce(array_agg(mark), '{}') FROM removals`
)

// PutRemovals implements eventlog.RemovalKeeper.
func (s *Store) PutRemovals(ctx context.Context, marks []string) error {
	err := s.transact(ctx, itself, func(t transaction) error {
		if len(marks) == 0 {
			return nil
		}
		if _, err := t.exec(lockCreation); err != nil {
			return err
		}
		var table bool
		if _, err := t.one([]any{&table}, hasRemovals, s.schema); err != nil {
			return err
		}
		if !table {
			if _, err := t.exec(makeRemovals); err != nil {
				return err
			}
		}
		_, err := t.exec(putRemovals, marks)
		return err
	})
	return wrap("mark removed sessions", err)
}

// Removals implements eventlog.RemovalKeeper.
func (s *Store) Removals(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var marks []string
		var table bool
		_, err := s.one(ctx, []any{&table}, hasRemovals, s.schema)
		if table && err == nil {
			_, err = s.one(ctx, []any{&marks}, listRemovals)
		}
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
