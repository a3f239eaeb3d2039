// Request compacts a session and prints the next request for two providers.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	l := eventlog.Open(memory.New())
	defer l.Close()
	if _, err := l.Append(ctx, "s", eventlog.New(),
		event.New(event.Message{Role: event.System, Parts: []event.Part{event.Text("Be brief.")}}),
		event.UserMessage("Where is my parcel?"), event.AssistantMessage("In Leipzig."),
		event.UserMessage("And the other one?"), event.AssistantMessage("In Halle."),
		event.UserMessage("Send both back.")); err != nil {
		return err
	}
	view, err := projection.Load(ctx, l, "s", projection.History())
	if err != nil {
		return err
	}
	compaction, err := view.State.KeepTurns(1, "The user's two parcels are in Leipzig and Halle.")
	if err != nil {
		return err
	}
	if _, err := projection.Compact(ctx, l, "s", compaction); err != nil {
		return err
	}
	if view, err = projection.Load(ctx, l, "s", projection.History()); err != nil {
		return err
	}
	messages, err := view.State.Messages()
	if err != nil {
		return err
	}
	claude, err := anthropic.Messages(messages)
	if err != nil {
		return err
	}
	gpt, err := openai.Chat(messages)
	fmt.Printf("%s\n%s\n", claude, gpt)
	return err
}
