package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/convlog/convlog/eventlog"
)

// ErrDenied reports that the server refuses the user: a wrong password, a missing right,
// or a connection that its rules do not allow. The error names the reason of the server.
// Correct the DSN, or grant the right.
var ErrDenied = errors.New("the server denies access")

// ErrForeign reports a schema or a server that this program must not use: the schema has
// tables of another program, the server is too old, a connection pooler is in between,
// or the server does not sync its writes.
var ErrForeign = errors.New("not a database for a log")

// Codes of PostgreSQL's errors.
const (
	codeUnique          = "23505"
	codeReadOnly        = "25006"
	codeNoRight         = "42501"
	codeNoTable         = "42P01"
	codeNoSchema        = "3F000"
	codeNoOption        = "42704"
	codeNoDatabase      = "3D000"
	codeNotYetAvailable = "55P03" // a lock was not available in time
)

// failure is the error of the driver in the terms of package eventlog. A server that
// cannot be reached is ErrUnavailable. The driver's error of a connection stays out of the
// chain, because it has the password in a field.
func (s *Store) failure(err error) error {
	var connecting *pgconn.ConnectError
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case s.history.lost.Load() != nil:
		return s.history.lost.Load()
	case errors.As(err, &server) && server.Code == codeReadOnly && !s.options.ReadOnly && len(s.hosts()) > 1:
		if pool := s.conns.Load(); pool != nil {
			pool.Reset() // the next connections find the new primary
		}
		return fmt.Errorf("%w: the server is no primary any more", eventlog.ErrUnavailable)
	case errors.As(err, &server):
		return serverError(server)
	case s.lifetime.Err() != nil:
		return eventlog.ErrClosed
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &connecting) && isDeadline(err):
		return fmt.Errorf("%w: connect: %w", eventlog.ErrUnavailable, context.DeadlineExceeded)
	case errors.As(err, &connecting):
		return fmt.Errorf("%w: %s", eventlog.ErrUnavailable, oneLine(connecting.Unwrap().Error()))
	case isDeadline(err):
		return context.DeadlineExceeded
	default:
		return fmt.Errorf("%w: %s", eventlog.ErrUnavailable, oneLine(err.Error()))
	}
}

// isDeadline reports whether the deadline of a context ended an operation. A socket has
// the same deadline and may notice it first, with an error of its own.
func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func serverError(e *pgconn.PgError) error {
	switch {
	case e.Code == codeReadOnly:
		return fmt.Errorf("%w: %s", eventlog.ErrReadOnly, e.Message)
	case e.Code == codeNoRight || strings.HasPrefix(e.Code, "28"):
		return fmt.Errorf("%w: %s", ErrDenied, e.Message)
	case e.Code == codeNoOption:
		return fmt.Errorf("%w: %s: leave it out of the DSN", ErrForeign, e.Message)
	case e.Code == codeNoDatabase:
		return fmt.Errorf("%w: %s", ErrForeign, e.Message)
	case e.Code == codeNoTable || e.Code == codeNoSchema:
		return fmt.Errorf("%w: %s", eventlog.ErrMoved, e.Message)
	case isTemporary(e.Code):
		return fmt.Errorf("%w: %s", eventlog.ErrUnavailable, e.Message)
	default:
		return e
	}
}

// isTemporary reports whether an error is about the state of the server: it starts or
// stops, or lacks connections, memory or disk space.
func isTemporary(code string) bool {
	return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "53") || strings.HasPrefix(code, "08") || strings.HasPrefix(code, "40")
}

// isRefused reports whether the error of a write means that nothing was written: the
// server says so, or the write was never sent. An error that ends the connection leaves
// the outcome open.
func isRefused(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.SeverityUnlocalized == "ERROR" || server.SeverityUnlocalized == "" && server.Severity == "ERROR"
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, pgx.ErrTxCommitRollback)
}

func isCode(err error, code string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == code
}

// oneLine joins the lines of an error.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
