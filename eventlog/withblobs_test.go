package eventlog_test

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// bare is a store without abilities.
type bare struct{ eventlog.Store }

// The abilities of both stores decide on the abilities of the whole.
func TestAbilitiesWithBlobs(t *testing.T) {
	if _, err := eventlog.WithBlobs(memory.New(), bare{memory.New()}); !errors.Is(err, eventlog.ErrUnsupported) {
		t.Errorf("a store without blobs: got error %v, want ErrUnsupported", err)
	}
	if _, err := eventlog.WithBlobs(nil, memory.New()); !errors.Is(err, event.ErrNilArgument) {
		t.Errorf("no store: got error %v, want ErrNilArgument", err)
	}
	s, err := eventlog.WithBlobs(bare{memory.New()}, memory.New())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := eventlog.As[eventlog.Locker](s); !ok {
		t.Error("the lock of the blobs is missing")
	}
	if _, ok := eventlog.As[eventlog.Eraser](s); ok {
		t.Error("lines of a store that erases nothing are erased")
	}
	if _, ok := eventlog.As[eventlog.Versioner](s); ok {
		t.Error("the versions of the lines are versions of the blobs")
	}
}
