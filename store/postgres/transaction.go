package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// transaction is a running transaction. Its errors are errors of package eventlog.
type transaction struct {
	store *Store
	ctx   context.Context
	tx    pgx.Tx
}

// exec runs a statement and returns the number of rows that it changed.
func (t transaction) exec(query string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(t.ctx, query, args...)
	return tag.RowsAffected(), t.store.failure(err)
}

// one runs a query of one row. found is false if it has no row.
func (t transaction) one(to []any, query string, args ...any) (found bool, err error) {
	return t.store.scan(t.tx.QueryRow(t.ctx, query, args...), to)
}

// scan reads a row. found is false if there is none.
func (s *Store) scan(row pgx.Row, to []any) (found bool, err error) {
	err = row.Scan(to...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, s.failure(err)
}

// transact runs fn in a transaction that writes, and that is durable under any setting
// of the server. An error of fn means that nothing was written. If the commit has an
// unknown outcome, the error is unknown(cause).
func (s *Store) transact(ctx context.Context, unknown func(cause error) error, fn func(t transaction) error) error {
	conn, err := s.writer(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return s.failure(err)
	}
	t := transaction{s, ctx, tx}
	_, err = t.exec(makeDurable)
	if err == nil {
		err = t.checkFence()
	}
	if err == nil {
		err = fn(t)
	}
	if err != nil {
		t.rollback()
		return err
	}
	warned := warningsOf(conn.Conn())
	err = tx.Commit(ctx)
	switch {
	case err == nil && warned.unreplicated():
		return unknown(errUnreplicated)
	case err == nil || isRefused(err):
		return s.failure(err)
	}
	return unknown(s.failure(err))
}

// rollback ends a transaction that wrote nothing. With an ended context it would close
// the connection.
func (t transaction) rollback() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), unlockTime)
	defer cancel()
	_ = t.tx.Rollback(ctx)
}

// itself is the unknown outcome of a write that can be repeated without harm.
func itself(cause error) error { return cause }
