package runlog_test

import (
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/store/memory"
)

// The turns of a session, with their tool calls.
func ExampleLoad() {
	ctx := context.Background()
	l := eventlog.Open(memory.New())
	defer l.Close()
	call := event.ToolCall("call-1", "track", []byte(`{"parcel":"A1"}`))
	_, err := l.Append(ctx, "order-42", eventlog.New(),
		event.UserMessage("Where is my parcel?"),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{call}}),
		event.ToolOutput("call-1", "track", []byte("in Leipzig"), false),
		event.AssistantMessage("It is in Leipzig."))
	if err != nil {
		log.Fatal(err)
	}
	run, err := runlog.Load(ctx, l, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	for _, turn := range run.Turns {
		fmt.Println(turn.Index, turn.Status, turn.Output.Text())
		for _, op := range turn.Ops {
			fmt.Println(" ", op.Kind, op.Name, op.Status)
		}
	}
	// Output:
	// 0 completed It is in Leipzig.
	//   llm  ok
	//   tool track ok
	//   llm  ok
}
