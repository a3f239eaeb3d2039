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

// Result codes of SQLite that the store handles.
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

// conn is one connection to the database with its prepared statements. One goroutine
// uses it at a time. Statements do not take the caller's context: each runs to its
// end. The callers of conn wait for locks.
type conn struct {
	raw   driverConn
	stmts map[string]*stmt
	// exclusive says that the connection locks all others out: it is closed after one
	// use.
	exclusive bool
}

// driverConn lists the methods that the store needs from the driver's connection.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// dial opens a connection. SQLite returns busy at once: the connection never waits for
// a lock.
func dial(path, parameters string) (*conn, error) {
	if err := checkFiles(path); err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: parameters}
	if filepath.VolumeName(absolute) != "" {
		name.Path = "/" + name.Path // file:///C:/logs/s.db
	}
	raw, err := new(sqlite3.Driver).Open(name.String())
	if err != nil {
		return nil, err
	}
	able, ok := raw.(driverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("driver connection %T does not support contexts", raw), raw.Close())
	}
	c := &conn{raw: able, stmts: map[string]*stmt{}}
	if err := c.run("PRAGMA busy_timeout = 0"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// run executes unprepared statements, mostly pragmas.
func (c *conn) run(query string) error {
	_, err := c.raw.ExecContext(context.Background(), query, nil)
	return err
}

// number returns the single value of a query without parameters.
func (c *conn) number(query string) (int64, error) {
	values, err := c.values(query, 1)
	if err != nil {
		return 0, err
	}
	n, ok := values[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%s: the result is a %T, want an integer", query, values[0])
	}
	return n, nil
}

// values returns the first row, of n columns, of an unprepared query.
func (c *conn) values(query string, n int) ([]driver.Value, error) {
	rows, err := c.raw.QueryContext(context.Background(), query, nil)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, n)
	err = rows.Next(row)
	return row, finish(rows, err)
}

// exec runs a prepared statement. The result has the number of changed rows.
func (c *conn) exec(query string, args ...driver.Value) (driver.Result, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.raw.ExecContext(context.Background(), s.bind(args))
}

// query runs a prepared query. The caller must close the rows before it runs the same
// query again.
func (c *conn) query(query string, args ...driver.Value) (driver.Rows, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.raw.QueryContext(context.Background(), s.bind(args))
}

// first fills row with the first row of a prepared query. found is false if the query
// has no rows.
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

// atOnce runs f in a transaction, so that all its queries read the same state.
func (c *conn) atOnce(f func() error) error {
	if _, err := c.exec("SAVEPOINT reading"); err != nil {
		return err
	}
	err := f()
	if _, released := c.exec("RELEASE reading"); err == nil {
		err = released
	}
	return err
}

// finish closes rows. err is the error that ended the iteration, or nil. After an
// error, Close returns the same error again, and finish discards it.
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
		return nil, errors.Join(fmt.Errorf("driver statement %T does not support contexts", raw), raw.Close())
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

// stmt is a prepared statement and the buffer of its arguments.
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

// isCode reports whether err is an SQLite error with one of the codes, extended or
// primary.
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

// isBusy reports whether another connection blocks this one for now. A process that is
// creating the database counts too: it may delete the journal during the read.
func isBusy(err error) bool {
	return errors.Is(err, errInUse) || isCode(err, codeBusy, codeLocked, codeProtocol, codeJournalGone)
}

// isDamage reports whether the file is damaged. A statement that SQLite cannot compile
// counts too, because the schema must be damaged then.
func isDamage(err error) bool { return isCode(err, codeError, codeCorrupt, codeNotADB, codeShortRead) }

// backoff is the time to wait before the next attempt at a lock.
type backoff time.Duration

const (
	firstBackoff = 200 * time.Microsecond
	lastBackoff  = 5 * time.Millisecond
)

func (b *backoff) next() time.Duration {
	*b = backoff(min(max(time.Duration(*b)*2, firstBackoff), lastBackoff))
	return time.Duration(*b)
}

// withTimeout runs f with a context that ends after limit. A limit of 0 is no limit.
// If the limit ends f, the error is ErrLocked.
func withTimeout(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
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

// retryBusy repeats f while the database is busy, until ctx ends.
func retryBusy(ctx context.Context, f func() error) error {
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
