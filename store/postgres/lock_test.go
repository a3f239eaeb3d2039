package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/tcpproxy"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/upkeep/erase"
)

// A holder of the store lock that was cut off stops: its context ends, and its writes
// fail although they reach the server on other connections.
func TestLockLost(t *testing.T) {
	t.Parallel()
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	first, second := openLog(t, dsn), openLog(t, direct)
	head, err := first.Append(t.Context(), "s", eventlog.New(), event.UserMessage("one"))
	if err != nil {
		t.Fatal(err)
	}
	for _, exclusive := range []bool{true, false} {
		locked, unlock, err := first.Store().(*postgres.Store).Lock(t.Context(), exclusive)
		if err != nil {
			t.Fatal(err)
		}
		proxy.Cut()
		<-locked.Done()
		if cause := context.Cause(locked); !errors.Is(cause, eventlog.ErrLockLost) {
			t.Errorf("the cause is %v, want ErrLockLost", cause)
		}
		// The other process gets the lock. The first one has not noticed its loss yet.
		_, release, err := second.Store().(*postgres.Store).Lock(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		deaf := context.WithoutCancel(locked)
		_ = first.Ping(t.Context()) // finds the broken connections
		if err := first.Store().(eventlog.Eraser).RemoveSession(deaf, "s", head); !errors.Is(err, eventlog.ErrLockLost) {
			t.Errorf("remove: got error %v, want ErrLockLost", err)
		}
		if _, _, err := first.Store().(eventlog.Blobs).PutBlob(deaf, strings.NewReader("body")); !errors.Is(err, eventlog.ErrLockLost) {
			t.Errorf("put blob: got error %v, want ErrLockLost", err)
		}
		if err := first.Store().Append(deaf, "s", head, suite.BatchAfter("s", head, 1), false); !errors.Is(err, eventlog.ErrLockLost) {
			t.Errorf("append: got error %v, want ErrLockLost", err)
		}
		release()
		unlock()
	}
	suite.CheckEvents(t, second, "s", 1)
}

// needing returns the first event of session "s", as a log stores it. It needs a blob.
func needing(t testing.TB, body string, d event.Digest) []event.Event {
	t.Helper()
	log := eventlog.Open(memory.New())
	e := event.UserMessage("needs the body")
	_, err := log.PutBlob(t.Context(), strings.NewReader(body))
	if err == nil {
		err = e.AddBlobs(d)
	}
	if err == nil {
		_, err = log.Append(t.Context(), "s", eventlog.New(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	for e := range log.Read(t.Context(), "s", eventlog.All()) {
		return []event.Event{e}
	}
	return nil
}

// A blob is collected while the writer of the blob is cut off. Its append then fails.
func TestBlobOfALostLock(t *testing.T) {
	t.Parallel()
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	first, second := openLog(t, dsn), openLog(t, direct)
	err := first.Hold(t.Context(), func(ctx context.Context) error {
		ref, err := first.PutBlob(ctx, strings.NewReader("a body"))
		if err != nil {
			return err
		}
		proxy.Cut()
		<-ctx.Done()
		if _, err := erase.Collect(t.Context(), second, erase.CollectOptions{Grace: -1}); err != nil {
			return err
		}
		store := first.Store()
		_ = first.Ping(t.Context()) // finds the broken connections
		sealed := needing(t, "a body", ref.Blob)
		if err := store.Append(t.Context(), "s", event.Head{}, sealed, false); !errors.Is(err, eventlog.ErrBlobNotFound) {
			t.Errorf("append: got error %v, want ErrBlobNotFound", err)
		}
		if err := store.Append(context.WithoutCancel(ctx), "s", event.Head{}, sealed, false); !errors.Is(err, eventlog.ErrLockLost) {
			t.Errorf("append under the lost lock: got error %v, want ErrLockLost", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// broken is a store whose connections break after each Rewrite.
type broken struct {
	*postgres.Store
	proxy *tcpproxy.Proxy
}

func (s broken) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	err := s.Store.Rewrite(ctx, session, expect, replace, add)
	s.proxy.Refuse(true)
	s.proxy.Cut()
	return err
}

// A client dies between the replacement of the lines and the deletion of a blob. The same
// redaction again, by another client, deletes the blob.
func TestInterruptedRedaction(t *testing.T) {
	t.Parallel()
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	store, err := postgres.New(dsn)
	if err != nil {
		t.Fatal(err)
	}
	first, second := eventlog.Open(broken{store, proxy}, eventlog.Options{SpillOver: 10}), openLog(t, direct)
	defer first.Close()
	if _, err := first.Append(t.Context(), "s", eventlog.New(), event.UserMessage("a secret body")); err != nil {
		t.Fatal(err)
	}
	redact := func(l *eventlog.Log) error {
		_, err := erase.Redact(t.Context(), l, "s", []int64{1}, erase.RedactOptions{Reason: "test"})
		return err
	}
	if err := redact(first); !errors.Is(err, erase.ErrUnfinished) {
		t.Errorf("the client that dies: got error %v, want ErrUnfinished", err)
	}
	if where := holds(direct, "a secret body"); where != "table blob_pieces" {
		t.Errorf("the body is in %q, want the table of blobs: the client died too late", where)
	}
	if err := redact(second); err != nil {
		t.Errorf("again: %v", err)
	}
	if where := holds(direct, "a secret body"); where != "" {
		t.Errorf("the body is still in %s", where)
	}
	if unfinished, err := second.Store().(eventlog.Eraser).Erasing(t.Context()); err != nil || !unfinished.Done() {
		t.Errorf("%v, %v", unfinished, err)
	}
	suite.CheckEvents(t, second, "s", 2)
}
