// Firstagent is an agent in 25 lines. Kill it and run it again: it goes on.
package main

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/store/jsonl"
)

func main() {
	l := eventlog.Open(jsonl.New("logs"))
	defer l.Close()
	track := flow.Tool("track", "Where a parcel is.", func(_ context.Context, p struct{ ID string }) (string, error) {
		return p.ID + " is in Leipzig", nil
	})
	call := event.ToolCall("call-1", "track", []byte(`{"ID":"A1"}`))
	model := flowtest.Script{flowtest.Say("", call), flowtest.Say("Your parcel is in Leipzig.")} // or &anthropic.Client{Key: key, Model: "claude-sonnet-4-5"}
	agent := &flow.Agent[struct{}]{Name: "parcels", Log: l, Turn: flow.Chat[struct{}](model, flow.Request{}, track)}
	out, err := agent.Run(context.Background(), "order-42", flow.Input{ID: "question-1", Messages: flow.Text("Where is my parcel A1?").Messages})
	fmt.Println(out.Text(), err)
}
