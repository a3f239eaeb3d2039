package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/tcpproxy"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/storetest"
)

// openLog opens a log, which is closed at the end of the test.
func openLog(t testing.TB, dsn string, opts ...postgres.Options) *eventlog.Log {
	t.Helper()
	store, err := postgres.New(dsn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store)
	t.Cleanup(func() { log.Close() })
	return log
}

// A server 10 ms away keeps every promise.
func TestDistant(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		proxy, dsn := pgtest.Proxied(t, pgtest.DSN(t))
		proxy.Delay(5 * time.Millisecond)
		h := harness(dsn)
		h.Latency, h.Parallel = 10*time.Millisecond, true
		return h
	})
}

// The answer to a commit is lost: the outcome is unknown, and a retry stores once.
func TestSwallowedAnswer(t *testing.T) {
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	dsn, err := pgtest.With(dsn, "pool_max_conns", "1")
	if err != nil {
		t.Fatal(err)
	}
	log, other := openLog(t, dsn), openLog(t, direct)
	for tries := range 50 {
		// The connection is open, and knows the statement.
		var head event.Head
		for range 2 {
			if err := suite.UntilStored(t.Context(), log, "s", event.UserMessage("before")); err != nil {
				t.Fatal(err)
			}
		}
		if head, err = other.Head(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		lost := suite.BatchAfter("s", head, 1)
		err := appendSwallowed(t, log, other, proxy, head, lost)
		if err == nil {
			t.Fatal("an append without an answer succeeded")
		}
		if now, _ := other.Head(t.Context(), "s"); now == head {
			continue // a notification was sent, and the append never was
		}
		if !errors.Is(err, eventlog.ErrUnknownOutcome) {
			t.Errorf("got error %v, want an unknown outcome", err)
		}
		_ = log.Ping(t.Context()) // finds a broken connection
		if err := log.Store().Append(t.Context(), "s", head, lost, false); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("the same append again: got error %v, want a conflict", err)
		}
		suite.CheckEvents(t, log, "s", int64(2*tries+3))
		return
	}
	t.Error("no append reached the server")
}

// appendSwallowed appends events while the answers of the server are lost.
func appendSwallowed(t *testing.T, log, other *eventlog.Log, proxy *tcpproxy.Proxy, head event.Head, events []event.Event) error {
	proxy.Swallow(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	go func() {
		for h, _ := other.Head(ctx, "s"); h == head && ctx.Err() == nil; h, _ = other.Head(ctx, "s") {
			time.Sleep(time.Millisecond)
		}
		cancel() // the events are stored, and the answer is on its way
	}()
	err := log.Store().Append(ctx, "s", head, events, false)
	proxy.Swallow(false)
	proxy.Cut()
	return err
}

// Connections break again and again while several writers append and retry. Each event is
// stored once.
func TestConnectionsCut(t *testing.T) {
	direct := pgtest.DSN(t)
	proxy, dsn := pgtest.Proxied(t, direct)
	suite.CheckCuts(t, openLog(t, dsn), openLog(t, direct), proxy.Cut, 60)
}

// Without a server every call is ErrUnavailable, and nothing is written.
func TestUnavailable(t *testing.T) {
	proxy, dsn := pgtest.Proxied(t, pgtest.DSN(t))
	log := openLog(t, dsn)
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("one")); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse(true)
	proxy.Cut()
	fresh := openLog(t, dsn)
	for _, l := range []*eventlog.Log{log, fresh} {
		_ = l.Ping(t.Context()) // finds the broken connections
		if err := l.Ping(t.Context()); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("ping: got error %v, want ErrUnavailable", err)
		}
		if _, err := l.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("two")); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("append: got error %v, want ErrUnavailable", err)
		}
	}
	proxy.Refuse(false)
	suite.CheckEvents(t, fresh, "s", 1)
}

// A network that is parted holds no caller longer than its context. Afterwards the log
// continues.
func TestParted(t *testing.T) {
	proxy, dsn := pgtest.Proxied(t, pgtest.DSN(t))
	log := openLog(t, dsn)
	suite.CheckParted(t, log, openLog(t, dsn), proxy)
	// The lock is taken before the network is parted.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := log.Hold(ctx, func(ctx context.Context) error {
		proxy.Stall(true)
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock: got error %v, want an exceeded deadline", err)
	}
	proxy.Stall(false)
	suite.CheckEvents(t, log, "s", 2)
}
