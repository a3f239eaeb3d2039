package suite

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// Network is a connection that a test can break.
type Network interface {
	// Stall holds back what both sides send, until it is called with false.
	Stall(on bool)
	// Cut breaks all connections, with what is held back.
	Cut()
	// Refuse refuses new connections, until it is called with false.
	Refuse(on bool)
}

// CheckParted checks that no call on a log outlives its context while the network to the
// server is parted, and that the log continues afterwards. unused is a log on the same
// data that was not used yet.
func CheckParted(t *testing.T, log, unused *eventlog.Log, network Network) {
	t.Helper()
	head, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("one"))
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range usesOf(t, log, unused, head) {
		network.Stall(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := use(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want an exceeded deadline", name, err)
		}
		cancel()
		network.Cut() // the server never gets the bytes
		network.Stall(false)
	}
	if err := UntilStored(t.Context(), log, "s", event.UserMessage("more")); err != nil {
		t.Error(err)
	}
	CheckEvents(t, unused, "s", 2)
}

// usesOf returns calls that need the server. None of them may change session "s", which
// has the head head.
func usesOf(t testing.TB, log, unused *eventlog.Log, head event.Head) map[string]func(context.Context) error {
	t.Helper()
	appendOne := func(l *eventlog.Log, x eventlog.Expect) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := l.Append(ctx, "s", x, event.UserMessage("two"))
			return err
		}
	}
	s := log.Store()
	return map[string]func(context.Context) error{
		"append":         appendOne(log, eventlog.Any()),
		"durable append": appendOne(log, eventlog.Any().Durable()),
		"another log":    appendOne(unused, eventlog.Any()),
		"head":           func(ctx context.Context) error { _, err := log.Head(ctx, "s"); return err },
		"list":           func(ctx context.Context) error { _, err := Collect(log.Sessions(ctx)); return err },
		"read":           func(ctx context.Context) error { _, err := Collect(log.Read(ctx, "s", eventlog.All())); return err },
		"watch":          func(ctx context.Context) error { _, err := Collect(log.Watch(ctx, "s", 1)); return err },
		"changes": func(ctx context.Context) error {
			_, err := Collect(Ability[eventlog.Notifier](t, s).Changes(ctx))
			return err
		},
		"put blob": func(ctx context.Context) error { _, err := log.PutBlob(ctx, strings.NewReader("body")); return err },
		"lease":    func(ctx context.Context) error { _, err := Ability[eventlog.Leaser](t, s).Lease(ctx, "x"); return err },
		"sync":     func(ctx context.Context) error { return Ability[eventlog.Syncer](t, s).Sync(ctx, "s") },
		"hold":     func(ctx context.Context) error { return log.Hold(ctx, func(context.Context) error { return nil }) },
		"remove":   func(ctx context.Context) error { return Ability[eventlog.Eraser](t, s).RemoveSession(ctx, "s", head) },
		"lock":     func(ctx context.Context) error { _, _, err := Ability[eventlog.Locker](t, s).Lock(ctx, true); return err },
	}
}

// CheckLostLease checks that a lease of a store that is cut off ends, in its process and for
// others. It uses two stores on the same data, the first one through network. A lease that
// is not renewed must end within renewed.
func CheckLostLease(t *testing.T, first, second eventlog.Store, network Network, renewed time.Duration) {
	t.Helper()
	other := Ability[eventlog.Leaser](t, second)
	lease, err := Ability[eventlog.Leaser](t, first).Lease(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(renewed)
	if _, err := other.Lease(t.Context(), "x"); !errors.Is(err, eventlog.ErrLeased) {
		t.Errorf("a held lease: got error %v, want ErrLeased", err)
	}
	network.Refuse(true)
	network.Cut()
	<-lease.Lost()
	for {
		next, err := other.Lease(t.Context(), "x")
		if err == nil {
			defer next.Release()
			break
		}
		if !errors.Is(err, eventlog.ErrLeased) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	network.Refuse(false)
	if err := lease.Release(); err != nil {
		t.Errorf("release of a lost lease: %v", err)
	}
	if held, err := other.Leased(t.Context(), "x"); err != nil || !held {
		t.Errorf("the lease of the second store: %v, %v", held, err)
	}
}

// CheckEvents checks that a session is whole and has n events.
func CheckEvents(t testing.TB, log *eventlog.Log, session string, n int64) {
	t.Helper()
	report, err := verify.Session(t.Context(), log, session)
	if err != nil || len(report.Defects) > 0 || report.Events != n {
		t.Errorf("session %q: %+v, %v; want %d events", session, report, err, n)
	}
}
