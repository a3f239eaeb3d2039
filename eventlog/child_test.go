package eventlog_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// No session is a child run of itself.
func TestOwnChild(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	for session, want := range map[string]error{"s": event.ErrInvalidPayload, "above": nil} {
		e := event.New(event.Child{State: event.ChildStarted, ChildID: "c", ChildSessionID: "s"})
		if _, err := log.Append(t.Context(), session, eventlog.New(), e); !errors.Is(err, want) {
			t.Errorf("appended to %q: %v", session, err)
		}
	}
	if _, err := log.Head(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the session that was refused: %v", err)
	}
}
