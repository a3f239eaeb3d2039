package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// limit simulates a full disk: the database can grow by room pages.
func limit(t testing.TB, s *Store, room int64) {
	t.Helper()
	var err error
	must(t, s.writer.do(t.Context(), &job{standalone: true, op: action(func(w *writer) error {
		var pages int64
		if pages, err = w.conn.number("PRAGMA page_count"); err != nil {
			return err
		}
		return w.conn.run(fmt.Sprintf("PRAGMA max_page_count = %d", pages+room))
	})}))
}

// action is a function as an operation.
type action func(w *writer) error

func (f action) apply(w *writer) error   { return f(w) }
func (action) unknown(cause error) error { return cause }

// wantFull checks that an error reports a full disk in one line, and that nothing was
// written.
func wantFull(t testing.TB, err error) {
	t.Helper()
	want(t, syscall.ENOSPC, err)
	if errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("the error reports an unknown outcome: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a line", err)
	}
}

// An append without disk space writes nothing, and neither does the rest of its
// transaction. Once there is space, the next append succeeds.
func TestFullInTransaction(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	limit(t, s, 2)
	big := strings.Repeat("x", 64<<10)
	wantFull(t, s.Append(t.Context(), "a", head, eventChain("a", head, 1, big), false))
	_, _, err := s.PutBlob(t.Context(), strings.NewReader(big))
	wantFull(t, err)
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 1 {
		t.Errorf("got %v, want 1 event", got)
	}
	head = add(t, s, "a", head, 1, "a small one fits")
	limit(t, s, 1<<20)
	add(t, s, "a", head, 1, big)
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 3 {
		t.Errorf("got %v, want 3 events", got)
	}
}

// fullError returns SQLite's error of a full disk.
func fullError(t testing.TB) error {
	t.Helper()
	s := open(t, tempPath(t))
	add(t, s, "a", event.Head{}, 1, "x")
	limit(t, s, 0)
	err := s.Append(t.Context(), "b", event.Head{}, eventChain("b", event.Head{}, 1, strings.Repeat("x", 64<<10)), false)
	wantFull(t, err)
	return err
}

// failingCommits is a connection whose commits fail. SQLite rolls a transaction back
// when its frames do not fit into the write-ahead log.
type failingCommits struct {
	driverConn
	failures []error
	entered  chan struct{} // if set, a failing commit waits here
	leave    chan struct{}
}

// failCommits makes the next commits of a store fail, one per error.
func failCommits(t testing.TB, s *Store, failures ...error) *failingCommits {
	t.Helper()
	var f *failingCommits
	must(t, s.writer.do(t.Context(), &job{standalone: true, op: action(func(w *writer) error {
		f = &failingCommits{driverConn: w.conn.raw, failures: failures}
		w.conn.raw = f
		delete(w.conn.stmts, "COMMIT")
		return nil
	})}))
	return f
}

func (f *failingCommits) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := f.driverConn.PrepareContext(ctx, query)
	if err != nil || query != "COMMIT" {
		return s, err
	}
	return &failingCommit{s.(driverStmt), f}, nil
}

type failingCommit struct {
	driverStmt
	conn *failingCommits
}

func (c *failingCommit) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	f := c.conn
	if len(f.failures) == 0 {
		return c.driverStmt.ExecContext(ctx, args)
	}
	if f.entered != nil {
		close(f.entered)
		<-f.leave
		f.entered = nil
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	if _, rollback := f.driverConn.ExecContext(ctx, "ROLLBACK", nil); rollback != nil {
		return nil, rollback
	}
	return nil, err
}

// A commit without disk space is retried once after a checkpoint. If it fails again,
// nothing is written.
func TestFullAtCommit(t *testing.T) {
	full := fullError(t)
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	failCommits(t, s, full)
	head = add(t, s, "a", head, 1, "the second try works")
	failCommits(t, s, full, full)
	wantFull(t, s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false))
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 2 {
		t.Errorf("got %v, want 2 events", got)
	}
	add(t, s, "a", head, 1, "x")
}

// A caller that leaves during the commit gets an unknown outcome. The store does not
// retry its append, because the caller owns the events.
func TestFullAtCommitAfterLeaving(t *testing.T) {
	full := fullError(t)
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	f := failCommits(t, s, full)
	f.entered, f.leave = make(chan struct{}), make(chan struct{})
	entered := f.entered
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Append(ctx, "a", head, eventChain("a", head, 1, "x"), false) }()
	<-entered
	cancel()
	want(t, eventlog.ErrUnknownOutcome, <-left)
	close(f.leave)
	add(t, s, "b", event.Head{}, 1, "x")
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 1 {
		t.Errorf("got %v, want 1 event", got)
	}
	add(t, s, "a", head, 1, "x")
}

// The store replaces a connection that was opened while the file was unwritable.
func TestReconnectWhenWritable(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	must(t, s.writer.do(t.Context(), &job{standalone: true, op: action(func(w *writer) error {
		readOnly, err := dial(path, "mode=ro")
		if err != nil {
			return err
		}
		defer func(old *conn) { _ = old.close() }(w.conn)
		w.conn, w.place.wal = readOnly, 0 // closing the old connection removes the log
		return nil
	})}))
	err := s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false)
	want(t, eventlog.ErrReadOnly, err)
	if errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("the error reports an unknown outcome: %v", err)
	}
	add(t, s, "a", head, 1, "x")
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 2 {
		t.Errorf("got %v, want 2 events", got)
	}
}
