package suite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// CheckCuts lets eight writers append to three sessions of a log, and calls cut, which
// breaks the log's connections, after every 20 events. The log direct must then have each
// event once.
func CheckCuts(t *testing.T, log, direct *eventlog.Log, cut func(), events int) {
	t.Helper()
	const writers, sessions = 8, 3
	var stored atomic.Int64
	errs := Concurrently(writers, func(w int) error {
		for n := range events {
			err := UntilStored(t.Context(), log, fmt.Sprint("s", w%sessions), event.UserMessage(fmt.Sprint(w, n)))
			if err != nil {
				return fmt.Errorf("event %d of writer %d: %w", n, w, err)
			}
			if stored.Add(1)%20 == 0 {
				cut()
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for s := range sessions {
		for e, err := range direct.Read(t.Context(), fmt.Sprint("s", s), eventlog.All()) {
			if err != nil {
				t.Fatal(err)
			}
			found[string(e.Data)]++
		}
	}
	for data, n := range found {
		if n != 1 {
			t.Errorf("%s is stored %d times", data, n)
		}
	}
	if len(found) != writers*events {
		t.Errorf("%d of %d events are stored", len(found), writers*events)
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
			expect = eventlog.AnyAfter(unknown.Head)
		case !errors.Is(err, eventlog.ErrUnavailable):
			return err
		}
	}
}
