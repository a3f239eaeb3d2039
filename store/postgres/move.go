package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrExists reports that the schema of the DSN exists, and that the options demand a new
// one. Name another schema, or leave out MustCreate.
var ErrExists = errors.New("exists already")

// Schema is the name of the schema of the log.
func (s *Store) Schema() string { return s.schema }

// Rename gives the schema of the log another name, for example after a copy is complete.
// An empty schema with that name is replaced. Other stores do not find the log under its
// old name any more. Close the store afterwards.
func (s *Store) Rename(ctx context.Context, schema string) error {
	if err := checkSchema(schema); err != nil {
		return fmt.Errorf("rename schema %q: %w", s.schema, err)
	}
	from, to := pgx.Identifier{s.schema}.Sanitize(), pgx.Identifier{schema}.Sanitize()
	err := s.transact(ctx, itself, func(t transaction) error {
		if _, err := t.exec("DROP SCHEMA IF EXISTS " + to); err != nil {
			return err
		}
		_, err := t.exec("ALTER SCHEMA " + from + " RENAME TO " + to)
		return err
	})
	return wrap(fmt.Sprintf("rename schema %q", s.schema), err)
}

// Drop removes the log: its schema with all tables. Close the store afterwards.
func (s *Store) Drop(ctx context.Context) error {
	err := s.transact(ctx, itself, func(t transaction) error {
		_, err := t.exec("DROP SCHEMA " + pgx.Identifier{s.schema}.Sanitize() + " CASCADE")
		return err
	})
	return wrap(fmt.Sprintf("drop schema %q", s.schema), err)
}
