package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite"

	"github.com/convlog/convlog/eventlog"
)

// SQLite's result codes that are told apart here.
const (
	codeError       = 1
	codeBusy        = 5
	codeLocked      = 6
	codeReadOnly    = 8
	codeIO          = 10
	codeCorrupt     = 11
	codeFull        = 13
	codeCannotOpen  = 14
	codeProtocol    = 15
	codeNotADB      = 26
	codeShortRead   = codeIO | 2<<8
	codeJournalGone = codeIO | 23<<8
	codeUnique      = 19 | 8<<8
	codeIndexSize   = codeIO | 19<<8
)

// conn is one connection to the database, with its prepared statements. It is
// used by one goroutine at a time. No caller's context enters it: statements
// run to their end, and waiting for locks is done outside.
type conn struct {
	raw   driverConn
	stmts map[string]*stmt
}

// driverConn is what the driver's connections can do.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// dial opens a connection that never waits for a lock by itself.
func dial(path, parameters string) (*conn, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: absolute, RawQuery: parameters}
	raw, err := new(sqlite3.Driver).Open(name.String())
	if err != nil {
		return nil, err
	}
	able, ok := raw.(driverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("driver connection %T lacks contexts", raw), raw.Close())
	}
	c := &conn{raw: able, stmts: map[string]*stmt{}}
	if err := c.run("PRAGMA busy_timeout = 0"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// run executes statements that are not worth preparing, pragmas above all.
func (c *conn) run(query string) error {
	_, err := c.raw.ExecContext(context.Background(), query, nil)
	return err
}

// number is the single value of a query without parameters.
func (c *conn) number(query string) (int64, error) {
	values, err := c.values(query, 1)
	if err != nil {
		return 0, err
	}
	n, ok := values[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%s: found %T", query, values[0])
	}
	return n, nil
}

// values is the first row of a query that is not prepared, of n columns.
func (c *conn) values(query string, n int) ([]driver.Value, error) {
	rows, err := c.raw.QueryContext(context.Background(), query, nil)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, n)
	err = rows.Next(row)
	return row, finish(rows, err)
}

// exec runs a prepared statement and says how many rows it changed.
func (c *conn) exec(query string, args ...driver.Value) (driver.Result, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.raw.ExecContext(context.Background(), s.bind(args))
}

// query runs a prepared query. The rows must be closed before the same query
// runs again.
func (c *conn) query(query string, args ...driver.Value) (driver.Rows, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.raw.QueryContext(context.Background(), s.bind(args))
}

// first fills row with the first row of a prepared query; found is false when
// there is none.
func (c *conn) first(row []driver.Value, query string, args ...driver.Value) (found bool, err error) {
	rows, err := c.query(query, args...)
	if err != nil {
		return false, err
	}
	err = rows.Next(row)
	if errors.Is(err, io.EOF) {
		return false, rows.Close()
	}
	return err == nil, finish(rows, err)
}

// each calls f with every row, of n columns, of a prepared query.
func (c *conn) each(f func(row []driver.Value), n int, query string, args ...driver.Value) error {
	rows, err := c.query(query, args...)
	if err != nil {
		return err
	}
	row := make([]driver.Value, n)
	for {
		if err = rows.Next(row); err != nil {
			break
		}
		f(row)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return finish(rows, err)
}

// finish closes rows; err is what ended the reading, nil for its natural end.
// After an error closing only says the same again.
func finish(rows driver.Rows, err error) error {
	closing := rows.Close()
	if err != nil {
		return err
	}
	return closing
}

func (c *conn) prepared(query string) (*stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	raw, err := c.raw.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	able, ok := raw.(driverStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("driver statement %T lacks contexts", raw), raw.Close())
	}
	s := &stmt{raw: able}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.raw.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.raw.Close())...)
}

// stmt is a prepared statement with room for its arguments.
type stmt struct {
	raw  driverStmt
	args []driver.NamedValue
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (s *stmt) bind(args []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// isCode reports whether err is SQLite's error with a code, extended or not.
func isCode(err error, codes ...int) bool {
	var e *sqlite3.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code() == code || e.Code()&0xff == code {
			return true
		}
	}
	return false
}

// isBusy reports whether another connection is in the way for now: also one
// that makes the file at the same time, and removed the journal first.
func isBusy(err error) bool {
	return errors.Is(err, errInUse) || isCode(err, codeBusy, codeLocked, codeProtocol, codeJournalGone)
}

// isDamage reports whether the file's content does not make sense. Our statements
// do, so one that SQLite cannot compile tells of a schema that is damaged.
func isDamage(err error) bool { return isCode(err, codeError, codeCorrupt, codeNotADB, codeShortRead) }

// backoff is how long to wait between attempts at a lock.
type backoff time.Duration

const (
	firstBackoff = 200 * time.Microsecond
	lastBackoff  = 5 * time.Millisecond
)

func (b *backoff) next() time.Duration {
	*b = backoff(min(max(time.Duration(*b)*2, firstBackoff), lastBackoff))
	return time.Duration(*b)
}

// within runs f, which waits for other processes, for as long as limit at most. No
// limit is 0.
func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if limit <= 0 {
		return f(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return lockedFor(limit)
	}
	return err
}

func lockedFor(limit time.Duration) error { return fmt.Errorf("%w for %v", eventlog.ErrLocked, limit) }

// patiently repeats f while the database is busy, until ctx ends.
func patiently(ctx context.Context, f func() error) error {
	var b backoff
	for {
		err := f()
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.next()):
		}
	}
}
