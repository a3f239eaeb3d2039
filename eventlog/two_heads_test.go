package eventlog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/storetest"
)

// twoHeads is a store that compares with another head than it lets read.
type twoHeads struct{ *storetest.Memory }

func (s twoHeads) Append(_ context.Context, session string, expect eventlog.Head, _ []eventlog.Event, _ bool) error {
	return &eventlog.ConflictError{Session: session, Expected: expect, Actual: eventlog.Head{Seq: 7, Hash: eventlog.Hash{1}}}
}

// An append to a store whose head cannot be what is read ends with the damage,
// not with its context.
func TestAppendToTwoHeads(t *testing.T) {
	l := eventlog.Open(twoHeads{storetest.NewMemory()})
	e, err := eventlog.NewUserMessage("hello")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), "a", eventlog.Any, e)
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) || damage.Session != "a" || damage.Seq != 7 {
		t.Errorf("got %v, want damage at seq 7 of session a", err)
	}
}
