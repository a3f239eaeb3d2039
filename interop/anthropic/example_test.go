package anthropic_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// Render the history of a session as a request. An interrupted call gets a result
// that says so.
func ExampleMessages() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	question := event.UserMessage("Where is order A1001?")
	call := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{
		event.Text("I look it up."), event.ToolCall("c1", "order", []byte(`{"id":"A1001"}`)),
	}})
	if _, err := log.Append(ctx, "refund", eventlog.New(), question, call); err != nil {
		panic(err)
	}

	h, err := projection.Load(ctx, log, "refund", projection.History())
	if err != nil {
		panic(err)
	}
	entries, err := h.State.Messages()
	if err != nil {
		panic(err)
	}
	request, err := anthropic.Messages(entries)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.ReplaceAll(string(request), `{"role"`, "\n{\"role\""))
	// Output:
	// {"messages":[
	// {"role":"user","content":[{"type":"text","text":"Where is order A1001?"}]},
	// {"role":"assistant","content":[{"type":"text","text":"I look it up."},{"type":"tool_use","id":"c1","name":"order","input":{"id":"A1001"}}]},
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"[interrupted: the call gave no result]"}],"is_error":true}]}]}
}
