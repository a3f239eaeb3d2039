package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// holdWriteLock takes the database's write lock on a connection of its own, like
// another process.
func holdWriteLock(t testing.TB, path string) (release func()) {
	t.Helper()
	c, err := dial(path, "mode=rw")
	must(t, err)
	must(t, c.run("BEGIN IMMEDIATE"))
	var once sync.Once
	release = func() {
		once.Do(func() {
			must(t, c.run("ROLLBACK"))
			must(t, c.close())
		})
	}
	t.Cleanup(release)
	return release
}

// A caller that leaves the queue gets the context's error, and nothing is written.
func TestLeaveWhileQueued(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	release := holdWriteLock(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	stays := make(chan error, 1)
	leaves := make(chan error, 1)
	go func() { leaves <- s.Append(ctx, "a", head, eventChain("a", head, 1, "leaves"), false) }()
	go func() {
		stays <- s.Append(context.Background(), "b", event.Head{}, eventChain("b", event.Head{}, 1, "stays"), false)
	}()
	waitQueued(t, s, 2)
	cancel()
	want(t, context.Canceled, <-leaves)
	release()
	must(t, <-stays)
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 1 {
		t.Errorf("got %v, want 1 event", got)
	}
	add(t, s, "a", head, 1, "x")
}

func waitQueued(t testing.TB, s *Store, n int) {
	t.Helper()
	for range 10_000 {
		s.writer.mu.Lock()
		queued := len(s.writer.queue)
		s.writer.mu.Unlock()
		if queued == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the queue never held %d jobs", n)
}

// A deadline is honoured while another process has the write lock. When all callers
// have left, the writer is idle.
func TestDeadlineWhileBusy(t *testing.T) {
	path := tempPath(t)
	s := open(t, path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	release := holdWriteLock(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	want(t, context.DeadlineExceeded, s.Append(ctx, "a", head, eventChain("a", head, 1, "x"), false))
	s.writer.mu.Lock()
	for s.writer.working {
		s.writer.idle.Wait()
	}
	s.writer.mu.Unlock()
	release()
	add(t, s, "a", head, 1, "x")
}

// gate is an operation that blocks inside the transaction or its commit.
type gate struct {
	entered, leave chan struct{}
	result         error
}

func newGate(result error) *gate {
	return &gate{make(chan struct{}), make(chan struct{}), result}
}

func (g *gate) apply(*writer) error {
	close(g.entered)
	<-g.leave
	return g.result
}

func (g *gate) unknown(cause error) error { return cause }

// A caller that leaves during a write gets an unknown outcome, and only after the
// writer has stopped reading its events.
func TestLeaveInFlight(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	g := newGate(nil)
	first := newGate(nil)
	go func() { _ = s.write(context.Background(), first, false) }()
	<-first.entered // the next two jobs go into one transaction
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Append(ctx, "a", head, eventChain("a", head, 1, "x"), false) }()
	waitQueued(t, s, 1)
	go func() { _ = s.write(context.Background(), g, false) }()
	waitQueued(t, s, 2)
	close(first.leave)
	<-g.entered // the append was applied before
	cancel()
	select {
	case err := <-left:
		t.Fatalf("left while its events were in use: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(g.leave)
	err := <-left
	var unknown *eventlog.UnknownOutcomeError
	if err != nil && (!errors.As(err, &unknown) || unknown.Head != head || !errors.Is(err, context.Canceled)) {
		t.Fatalf("got %v", err)
	}
	add(t, s, "b", event.Head{}, 1, "x") // this append returns after the first commit
	if got := seqs(t, s, "a", eventlog.Span{}); len(got) != 2 {
		t.Errorf("got %v, want 2 events", got)
	}
}

// A job that fails in the middle of a transaction does not fail the other jobs.
func TestFailureInTransaction(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	g := newGate(nil)
	go func() { _ = s.write(context.Background(), g, false) }()
	<-g.entered
	results := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1), "c": make(chan error, 1)}
	bad := []event.Event{eventChain("b", event.Head{}, 1, "x")[0], eventChain("b", event.Head{}, 1, "x")[0]}
	start := func(session string, expect event.Head, events []event.Event, n int) {
		go func() { results[session] <- s.Append(context.Background(), session, expect, events, false) }()
		waitQueued(t, s, n)
	}
	start("a", head, eventChain("a", head, 1, "x"), 1)
	start("b", event.Head{}, bad, 2) // seq 1 twice
	start("c", event.Head{}, eventChain("c", event.Head{}, 1, "x"), 3)
	close(g.leave)
	must(t, <-results["a"])
	must(t, <-results["c"])
	if err := <-results["b"]; !isCode(err, 19) { // SQLITE_CONSTRAINT
		t.Errorf("got %v", err)
	}
	_, err := collect(s.Read(t.Context(), "b", eventlog.Span{}))
	want(t, eventlog.ErrNotFound, err)
	for session, n := range map[string]int{"a": 2, "c": 1} {
		if got := seqs(t, s, session, eventlog.Span{}); len(got) != n {
			t.Errorf("session %s: got %v, want %d events", session, got, n)
		}
	}
}

// After a failed commit the outcome is unknown, and the store still works.
func TestCommitFails(t *testing.T) {
	s := open(t, tempPath(t))
	head := add(t, s, "a", event.Head{}, 1, "x")
	// Only a deferred constraint makes a commit fail on demand.
	must(t, s.write(t.Context(), statement(`CREATE TABLE parent (x PRIMARY KEY);
		CREATE TABLE child (x REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`), false))
	must(t, s.writer.do(t.Context(), &job{op: statement("PRAGMA foreign_keys = ON"), standalone: true}))
	g := newGate(nil)
	go func() { _ = s.write(context.Background(), g, false) }()
	<-g.entered
	result := make(chan error, 1)
	go func() {
		result <- s.Append(context.Background(), "a", head, eventChain("a", head, 1, "x"), false)
	}()
	waitQueued(t, s, 1)
	go func() { _ = s.write(context.Background(), statement("INSERT INTO child VALUES (1)"), false) }()
	waitQueued(t, s, 2)
	close(g.leave)
	var unknown *eventlog.UnknownOutcomeError
	if err := <-result; !errors.As(err, &unknown) || unknown.Head != head || unknown.Session != "a" {
		t.Fatalf("got %v", err)
	}
	add(t, s, "a", head, 1, "x")
}

// statement is SQL text as an operation.
type statement string

func (q statement) apply(w *writer) error   { return w.conn.run(string(q)) }
func (statement) unknown(cause error) error { return cause }

// A conflict has the actual head, against the file and against another append of the
// same transaction.
func TestConflict(t *testing.T) {
	path := tempPath(t)
	s, other := open(t, path), open(t, path)
	head := add(t, s, "a", event.Head{}, 2, "x")
	moved := add(t, other, "a", head, 1, "y")
	for _, expect := range []event.Head{{}, head, {Seq: 9, Hash: head.Hash}, {Seq: 3, Hash: head.Hash}} {
		err := s.Append(t.Context(), "a", expect, eventChain("a", expect, 1, "x"), false)
		var conflict *eventlog.ConflictError
		if !errors.As(err, &conflict) || conflict.Actual != moved || conflict.Expected != expect {
			t.Errorf("expecting %v: got %v", expect, err)
		}
	}
	err := s.Append(t.Context(), "none", head, eventChain("none", head, 1, "x"), false)
	want(t, eventlog.ErrConflict, err)

	const racers = 8
	results := make(chan error, racers)
	for i := range racers {
		go func() {
			results <- s.Append(context.Background(), "a", moved, eventChain("a", moved, 2, fmt.Sprint(i)), false)
		}()
	}
	won := 0
	for range racers {
		if err := <-results; err == nil {
			won++
		} else {
			want(t, eventlog.ErrConflict, err)
		}
	}
	if got := seqs(t, s, "a", eventlog.Span{}); won != 1 || len(got) != 5 {
		t.Errorf("%d won, got %v", won, got)
	}
}

// A cached head conflicts after another process removed and recreated the session.
func TestConflictWithRecreatedSession(t *testing.T) {
	path := tempPath(t)
	s, other := open(t, path), open(t, path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	must(t, other.RemoveSession(t.Context(), "a", head))
	want(t, eventlog.ErrConflict, s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false))
	again := add(t, other, "a", event.Head{}, 1, "x")
	want(t, eventlog.ErrConflict, s.Append(t.Context(), "a", head, eventChain("a", head, 1, "x"), false))
	add(t, s, "a", again, 1, "x")
}

// Close fails jobs that are queued while another process has the write lock.
func TestCloseWhileQueued(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	head := add(t, s, "a", event.Head{}, 1, "x")
	release := holdWriteLock(t, path)
	result := make(chan error, 1)
	go func() { result <- s.Append(context.Background(), "a", head, eventChain("a", head, 1, "x"), false) }()
	waitQueued(t, s, 1)
	must(t, s.Close())
	want(t, eventlog.ErrClosed, <-result)
	release()
}

// A store that never syncs keeps no order in a power loss, so a fork syncs its parent.
func TestOrdersAppends(t *testing.T) {
	for options, want := range map[Options]bool{{}: true, {SyncAtCheckpoint: true}: true, {NoSync: true}: false} {
		if got := New("unused", options).OrdersAppends(); got != want {
			t.Errorf("%+v: got %v, want %v", options, got, want)
		}
	}
}
