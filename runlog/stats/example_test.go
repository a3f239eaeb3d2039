package stats_test

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
)

// The cost of a session, and the part of it on orphaned branches.
func ExampleLoadCost() {
	ctx := context.Background()
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	answer := event.New(event.Message{
		Role: event.Assistant, Model: "m1",
		Usage: event.Usage{InputTokens: 140, OutputTokens: 6},
		Parts: []event.Part{event.Text("It was sent on Monday.")},
	})
	answer.Cost = 1_500_000 // nano-dollars
	for _, e := range []event.Event{event.UserMessage("Where is order A1001?"), answer, event.New(event.HeadMove{To: 1})} {
		if _, err := log.Append(ctx, "refund", eventlog.Any(), e); err != nil {
			panic(err)
		}
	}

	c, err := stats.LoadCost(ctx, log, "refund")
	fmt.Println(c.Own.Cost, c.Own.Usage.InputTokens, "tokens in", c.Own.Responses, "answers", err)
	fmt.Println(c.Path.Cost, "on the path,", c.Orphaned.Cost, "not")
	// Output:
	// 0.0015 140 tokens in 1 answers <nil>
	// 0 on the path, 0.0015 not
}
