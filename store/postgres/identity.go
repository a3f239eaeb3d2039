package postgres

import (
	"context"
	"crypto/rand"
)

// Table identity has at most one row: the id of the store. A schema of an earlier build lacks
// the table.
const (
	makeIdentity = `CREATE TABLE identity (id text NOT NULL)`
	hasIdentity  = `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid WHERE n.nspname = $1 AND c.relname = 'identity')`
	findIdentity = `SELECT id FROM identity`
)

// StoreID implements eventlog.Identifier.
func (s *Store) StoreID(ctx context.Context) (string, error) {
	id, _, err := s.identity(func(to []any, query string, args ...any) (bool, error) { return s.one(ctx, to, query, args...) })
	if err == nil && id == "" && !s.options.ReadOnly {
		err = s.transact(ctx, func(cause error) error { return cause }, func(t transaction) (err error) {
			id, err = s.identify(t)
			return err
		})
	}
	return id, wrap("read the id of the store", err)
}

// identity is the stored id, empty if there is none, and reports whether its table exists.
func (s *Store) identity(one func(to []any, query string, args ...any) (bool, error)) (id string, table bool, err error) {
	if _, err = one([]any{&table}, hasIdentity, s.schema); table && err == nil {
		_, err = one([]any{&id}, findIdentity)
	}
	return id, table, err
}

// identify stores an id, unless another process has stored one.
func (s *Store) identify(t transaction) (string, error) {
	if _, err := t.exec(lockCreation); err != nil {
		return "", err
	}
	id, table, err := s.identity(t.one)
	if err != nil || id != "" {
		return id, err
	}
	if !table {
		if _, err := t.exec(makeIdentity); err != nil {
			return "", err
		}
	}
	id = rand.Text()
	_, err = t.exec(`INSERT INTO identity VALUES ($1)`, id)
	return id, err
}
