package replaytest_test

import (
	"fmt"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/replay/replaytest"
)

func answered(text string) eventlog.Event {
	e, err := eventlog.NewMessage(eventlog.Message{Role: eventlog.Assistant, Parts: []eventlog.Part{eventlog.Text(text)}})
	if err != nil {
		panic(err)
	}
	e.Seq, e.SessionID = 1, "refund"
	return e
}

// A run answers otherwise than the recording.
func ExampleDiverges() {
	recorded, got := answered("It is on its way."), answered("It was lost.")
	d, err := replaytest.Diverges(replay.Of(recorded), replay.Of(got))
	fmt.Println(d, err)
	// Output:
	// the run parts from the recording at event 1, message_added, in data.parts[0].text:
	// 	recorded: "It is on its way."
	// 	got:      "It was lost." <nil>
}
