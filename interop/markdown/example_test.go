package markdown_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/markdown"
	"github.com/convlog/convlog/store/memory"
)

// Write a session as Markdown.
func Example() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer log.Close()
	question := event.UserMessage("Where is my parcel?")
	answer := event.AssistantMessage("In **Leipzig**.")
	question.Timestamp = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	answer.Timestamp = question.Timestamp.Add(time.Second)
	if _, err := log.Append(ctx, "order-42", eventlog.New(), question, answer); err != nil {
		fmt.Println(err)
		return
	}
	if err := markdown.Write(ctx, os.Stdout, log, "order-42", eventlog.All().OnPath(), nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # Where is my parcel?
	//
	// - Session: order-42
	// - Started: 2026-03-01 10:00:00
	// - Last event: 2026-03-01 10:00:01
	//
	// ## Turn 0
	//
	// ### user · 2026-03-01 10:00:00 · \#1
	//
	// Where is my parcel?
	//
	// ### assistant · 2026-03-01 10:00:01 · \#2
	//
	// In **Leipzig**.
	//
	// ---
	//
	// 2 events
}
