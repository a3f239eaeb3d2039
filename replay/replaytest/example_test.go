package replaytest_test

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/replay/replaytest"
)

func answered(text string) event.Event {
	e := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(text)}})
	e.Seq, e.SessionID = 1, "refund"
	return e
}

// A run with another answer than the recording.
func ExampleDiverges() {
	recorded, got := answered("It is on its way."), answered("It was lost.")
	d, err := replaytest.Diverges(replay.Of(recorded), replay.Of(got))
	fmt.Println(d, err)
	// Output:
	// the run differs from the recording at event 1, message_added, in data.parts[0].text:
	// 	recorded: "It is on its way."
	// 	got:      "It was lost." <nil>
}
