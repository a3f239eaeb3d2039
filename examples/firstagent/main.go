// Firstagent is an agent in 40 lines. Kill it and run it again: it goes on.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/jsonl"
)

type parcel struct {
	ID string `json:"id" jsonschema:"the number on the label"`
}

func track(_ context.Context, p parcel) (string, error) { return p.ID + " is in Leipzig", nil }

func main() {
	l := eventlog.Open(jsonl.New("logs"))
	defer l.Close()
	model := flow.Script{Answers: []flow.ScriptAnswer{ // or &anthropic.Client{Key: key, Model: "claude-sonnet-4-5"}
		flow.ScriptText("", event.ToolCall("call-1", "track", []byte(`{"id":"A1"}`))),
		flow.ScriptText("Your parcel is in Leipzig."),
	}}
	agent := flow.Agent[struct{}]{Name: "parcels", Log: l,
		Turn: flow.Chat[struct{}](model, flow.Request{System: "Be brief."}, flow.MustTool("track", "Where a parcel is.", track))}
	question := flow.Text("Where is my parcel A1?")
	question.ID = "question-1" // sent again after a kill, it is the same question
	out, err := agent.Run(context.Background(), flow.Session("order-42"), question)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Message.Text())
}
