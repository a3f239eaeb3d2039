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

// limit makes the database as good as full: room is how many pages it may grow.
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

// action is an operation that is a function.
type action func(w *writer) error

func (f action) apply(w *writer) error   { return f(w) }
func (action) unknown(cause error) error { return cause }

// wantFull makes sure that an error says that the disk is full, and that
// nothing was written.
func wantFull(t testing.TB, err error) {
	t.Helper()
	want(t, syscall.ENOSPC, err)
	if errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("the outcome is said to be unknown: %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a line", err)
	}
}

// An append that finds no room has written nothing, whatever else was in its
// transaction; when there is room again the next one works.
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

// fullError is SQLite's own error of a full disk.
func fullError(t testing.TB) error {
	t.Helper()
	s := open(t, tempPath(t))
	add(t, s, "a", event.Head{}, 1, "x")
	limit(t, s, 0)
	err := s.Append(t.Context(), "b", event.Head{}, eventChain("b", event.Head{}, 1, strings.Repeat("x", 64<<10)), false)
	wantFull(t, err)
	return err
}

// failingCommits is a connection whose commits fail, as those do whose frames
// do not all find room in the write-ahead log: the transaction is rolled back.
type failingCommits struct {
	driverConn
	failures []error
	entered  chan struct{} // if set, a failing commit waits here
	leave    chan struct{}
}

// failCommits makes the next commits of a store fail, one for each error.
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

// A commit that finds no room is tried once more when the write-ahead log was
// folded back, and then refused: nothing was written.
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

// Who left while his append was committed was told that its outcome is
// unknown. It is not tried again, as its events are his.
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

// A connection that was made while the file could not be written is replaced.
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
		w.conn = readOnly
		return nil
	})}))
	err := s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false)
	want(t, eventlog.ErrReadOnly, err)
	if errors.Is(err, eventlog.ErrUnknownOutcome) {
		t.Errorf("the outcome is said to be unknown: %v", err)
	}
	add(t, s, "a", head, 1, "x")
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 2 {
		t.Errorf("got %v, want 2 events", got)
	}
}
