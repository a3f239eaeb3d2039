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
	"github.com/convlog/convlog/store/postgres"
)

// startPair starts a primary and its synchronous standby, and returns the DSN of both.
func startPair(t *testing.T) (primary, standby *pgtest.Server, dsn string) {
	t.Helper()
	primary = pgtest.Start(t, pgtest.Unsynced...)
	standby = pgtest.StartStandby(t, primary)
	if err := primary.Synchronous(); err != nil {
		t.Fatal(err)
	}
	return primary, standby, with(t, pgtest.Hosts(primary, standby), "assume_synced", "true")
}

// The server commits, and stops waiting for a standby that is down: the outcome of the
// append is unknown, and so is the outcome of a retry. Once the standby is back, a retry
// stores once.
func TestUnreplicatedCommit(t *testing.T) {
	t.Parallel()
	primary, standby, dsn := startPair(t)
	log := openLog(t, dsn)
	if _, err := log.Append(t.Context(), "first", eventlog.New(), event.UserMessage("one")); err != nil {
		t.Fatal(err)
	}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitAlone(t, primary)
	retry := eventlog.Any().After(event.Head{})
	ways := map[string]func(e event.Event) error{
		"plain": func(e event.Event) error {
			_, err := log.Append(t.Context(), "plain", retry, e)
			return err
		},
		"durable": func(e event.Event) error {
			_, err := log.Append(t.Context(), "durable", retry.Durable(), e)
			return err
		},
		"locked": func(e event.Event) error {
			return log.Hold(t.Context(), func(ctx context.Context) error {
				_, err := log.Append(ctx, "locked", retry, e)
				return err
			})
		},
	}
	events := make(map[string]event.Event)
	stop := endWaits(t, primary)
	for name, way := range ways {
		events[name] = event.UserMessage("hello")
		for range 2 {
			if err := way(events[name]); !errors.Is(err, eventlog.ErrUnknownOutcome) {
				t.Errorf("%s: got error %v, want an unknown outcome", name, err)
			}
		}
	}
	stop()
	if err := standby.Run(); err != nil {
		t.Fatal(err)
	}
	for name, way := range ways {
		if err := way(events[name]); err != nil {
			t.Errorf("%s, with the standby: %v", name, err)
		}
		suite.CheckEvents(t, log, name, 1)
	}
}

// awaitAlone waits until no standby is connected: processes of a killed standby may confirm
// a commit before they end.
func awaitAlone(t *testing.T, primary *pgtest.Server) {
	t.Helper()
	for {
		n, err := pgtest.Number(primary.DSN(), `SELECT count(*) FROM pg_stat_replication`)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// endWaits ends the waits for a standby until stop is called.
func endWaits(t *testing.T, primary *pgtest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			if err := pgtest.Exec(primary.DSN(), `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// A standby that lacks acknowledged events is promoted. An open log writes and reads no
// more, and says which event is gone. A log that is opened afterwards continues.
func TestRollback(t *testing.T) {
	t.Parallel()
	primary, standby, dsn := startPair(t)
	appending, reading, fresh := openLog(t, dsn), openLog(t, dsn, postgres.Options{ReadOnly: true}), openLog(t, dsn)
	add := func(l *eventlog.Log, e event.Event) error {
		_, err := l.Append(t.Context(), "s", eventlog.Any(), e)
		return err
	}
	if err := add(appending, event.UserMessage("replicated")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(standby.Kill(), primary.Asynchronous()); err != nil {
		t.Fatal(err)
	}
	if err := add(appending, event.UserMessage("lost")); err != nil {
		t.Fatal(err)
	}
	lost, err := reading.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{primary.Kill, standby.Run, standby.Promote} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for name, use := range map[string]func() error{
		"append": func() error { return add(appending, event.UserMessage("more")) },
		"read": func() error {
			_, err := reading.Head(t.Context(), "s")
			return err
		},
	} {
		err := use()
		for errors.Is(err, eventlog.ErrUnavailable) || errors.Is(err, eventlog.ErrUnknownOutcome) {
			err = use()
		}
		for range 2 {
			var rolledBack *eventlog.RolledBackError
			if !errors.As(err, &rolledBack) || rolledBack.Session != "s" || rolledBack.Head != lost {
				t.Errorf("%s: got error %v, want that event %d is gone", name, err, lost.Seq)
			}
			err = use()
		}
	}
	if err := add(fresh, event.UserMessage("more")); err != nil {
		t.Error(err)
	}
	suite.CheckEvents(t, fresh, "s", 2)
}
