package replay

import (
	"context"
	"flag"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/replay/replaytest"
	"github.com/convlog/convlog/store/memory"
)

var update = flag.Bool("update", false, "record testdata/parcel.jsonl anew")

// The recording answers for the model and the tool. With -update the live ones do.
func TestParcel(t *testing.T) {
	recording := replaytest.Open(t, "testdata/parcel.jsonl", replaytest.Options{Update: *update})
	log := eventlog.Open(memory.New())
	defer log.Close()
	err := run(t.Context(), log, "parcel", "Where is my parcel?", replaytest.Model(recording, liveModel), recording.Tool(liveTool))
	if err != nil {
		t.Fatal(err)
	}
	recording.Check(t, log, "parcel")
}

// liveModel would ask a model; here it is a script.
func liveModel(_ context.Context, messages []projection.Entry) (event.Event, error) {
	if len(messages) == 1 {
		call := event.ToolCall("c1", "track", []byte(`{"parcel":"A1"}`))
		return event.New(event.Message{Role: event.Assistant, Parts: []event.Part{call}}), nil
	}
	return event.AssistantMessage("It is in Leipzig."), nil
}

func liveTool(_ context.Context, call event.Part) (event.Part, error) {
	return event.ToolResult(call.CallID, call.Name, event.Text("in Leipzig")), nil
}
