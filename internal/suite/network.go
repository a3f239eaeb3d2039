package suite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// Network is a connection to a server that a test can break. Stall, Swallow and Refuse
// last until they are called with false.
type Network interface {
	// Stall delays all bytes, in both directions.
	Stall(on bool)
	// Swallow discards the bytes that the server sends.
	Swallow(on bool)
	// Refuse refuses new connections.
	Refuse(on bool)
	// Cut breaks all connections, and discards delayed bytes.
	Cut()
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

// UntilStored appends an event until that succeeds, or fails for another reason than the
// connection.
func UntilStored(ctx context.Context, log *eventlog.Log, session string, e event.Event) error {
	expect := eventlog.Any()
	for {
		_, err := log.Append(ctx, session, expect, e)
		var unknown *eventlog.UnknownOutcomeError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &unknown):
			expect = eventlog.Any().After(unknown.Head)
		case !errors.Is(err, eventlog.ErrUnavailable):
			return err
		}
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
