package backward

import (
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
)

func TestNilEvent(t *testing.T) {
	if _, err := new(Walk).Step(nil); !errors.Is(err, event.ErrNilArgument) {
		t.Errorf("a step to no event: %v", err)
	}
	var calls Calls
	calls.AddOlder(nil)
	if calls.Knows("c") {
		t.Error("a call of no message is known")
	}
}
