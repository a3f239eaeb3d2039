package erase_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// A redaction in two sessions appends one redacted event to their fork, which shares an
// event of the first session and loses an own event with the event of the second.
func TestOneNoteInAForkOfTwoRedactedSessions(t *testing.T) {
	x := newRawLog(t, memory.New())
	x.append("a", event.UserMessage("hello"), event.New(event.Op{Kind: "raw_request", Body: x.body("the xylophone")}))
	for _, family := range [][2]string{{"a", "b"}, {"b", "f"}} {
		_, err := fork.At(t.Context(), x.Log, family[0], fork.Head(), fork.Options{ID: family[1], Force: true})
		x.must(err)
		if family[1] == "b" {
			x.append("b", event.UserMessage("a xylophone"))
		}
	}
	x.append("f", event.New(event.StepStart{Step: 1, Model: "m", RequestDigest: event.DigestOf(nil)}))
	p, err := search.Literal("xylophone")
	x.must(err)
	done, err := erase.Match(t.Context(), x.Log, p, nil)
	x.must(err)
	x.same("erased", []string{"a 2 op_logged", "b 4 message_added", "f 6 step_started"}, erased(done))
	notes := 0
	for e, err := range x.Read(t.Context(), "f", eventlog.All().Own()) {
		x.must(err)
		if e.Type.Name() == event.Redacted {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("the fork has %d redacted events, want 1", notes)
	}
}
