package witness

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// CheckHeads verifies the sessions of a damaged store against the heads that they had. It fails
// the test if a session is not as it was written and nothing names it. It returns the sessions
// that were named, and how many are not as they were written.
func (w *Witness) CheckHeads(t testing.TB, s eventlog.Store) (named []string, lost int) {
	t.Helper()
	known := map[string][]event.Head{}
	for session, events := range w.written {
		known[session] = []event.Head{headEvent(events).Head()}
	}
	l := eventlog.Open(s)
	v := verify.New(l, verify.Options{Heads: known})
	for _, session := range slices.Sorted(maps.Keys(known)) {
		report, err := v.Session(t.Context(), session)
		isNamed := err != nil || report.Damaged() > 0
		if isNamed {
			named = append(named, session)
		}
		if w.isWhole(t.Context(), s, session) {
			continue
		}
		if lost++; !isNamed {
			t.Errorf("session %q is not as it was written, and nothing names it", session)
		}
	}
	return named, lost
}

// isWhole reports whether a session has the lines that were written.
func (w *Witness) isWhole(ctx context.Context, s eventlog.Store, session string) bool {
	due := w.written[session]
	for e, err := range s.Read(ctx, session, eventlog.Span{}) {
		if err != nil || len(due) == 0 || !bytes.Equal(e.Line(), due[0].Line()) {
			return false
		}
		due = due[1:]
	}
	return len(due) == 0
}
