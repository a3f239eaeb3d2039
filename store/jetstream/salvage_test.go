package jetstream_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// A redaction during a salvage is no damage: the lines that it replaces are salvaged as they are
// then.
func TestFragmentsWhileLinesAreRewritten(t *testing.T) {
	t.Parallel()
	log := openLog(t, jetstream.Options{Connect: natstest.Shared(t, false).Connect})
	const appends = 1030 // more than the messages of a batch
	for range appends {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	due := int64(1)
	for f, err := range log.Store().(eventlog.Salvager).Fragments(t.Context(), "s") {
		if err != nil || f.Err != nil || f.Seq != due {
			t.Fatalf("fragment %d, want %d: %v, %v", f.Seq, due, f.Err, err)
		}
		if due++; due == 2 {
			if _, err := erase.Redact(t.Context(), log, "s", []int64{3, appends - 20, appends - 19, appends - 5}, erase.RedactOptions{Reason: "test"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if due <= appends {
		t.Errorf("%d fragments of %d", due-1, appends)
	}
}
