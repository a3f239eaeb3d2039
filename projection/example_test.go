package projection_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// refund is a session of a question, a look at the order, and an answer.
func refund() *eventlog.Log {
	log := eventlog.Open(memory.New())
	tell := teller(log)
	tell(event.UserMessage("Where is order A1001?"))
	tell(event.New(event.Message{
		Role: event.Assistant, Model: "m1",
		Usage: event.Usage{InputTokens: 120, OutputTokens: 9},
		Parts: []event.Part{event.ToolCall("c1", "order", []byte(`{"id":"A1001"}`))},
	}))
	tell(event.ToolOutput("c1", "order", []byte("sent on Monday"), false))
	answer := event.New(event.Message{
		Role: event.Assistant, Model: "m1",
		Usage: event.Usage{InputTokens: 140, OutputTokens: 6},
		Parts: []event.Part{event.Text("It was sent on Monday.")},
	})
	answer.Cost = 1_500_000 // nano-dollars
	tell(answer)
	return log
}

// teller appends events.
func teller(log *eventlog.Log) func(event.Event) {
	return func(e event.Event) {
		if _, err := log.Append(context.Background(), "refund", eventlog.Any(), e); err != nil {
			panic(err)
		}
	}
}

func show(entries []projection.Entry) {
	for _, e := range entries {
		fmt.Printf("%d %s:", e.Seq, e.Message.Role)
		for _, p := range e.Message.Parts {
			fmt.Print(" ", p.Type, " ", p.Name, p.Text)
		}
		fmt.Println()
	}
}

// The messages for the next model call, before and after a compaction.
func ExampleLoad() {
	ctx := context.Background()
	log := refund()
	defer func() { _ = log.Close() }()

	h, err := projection.Load(ctx, log, "refund", projection.History())
	if err != nil {
		panic(err)
	}
	entries, err := h.State.Messages()
	fmt.Println(len(entries), err)
	show(entries)

	if _, err := projection.Compact(ctx, log, "refund", event.Compaction{
		Covers: event.Stretch{From: 1, To: 3}, Summary: "The user asked for order A1001, which was sent.",
	}); err != nil {
		panic(err)
	}
	h, err = projection.Load(ctx, log, "refund", projection.History())
	if err != nil {
		panic(err)
	}
	entries, err = h.State.Messages()
	fmt.Println(len(entries), err)
	show(entries)
	// Output:
	// 4 <nil>
	// 1 user: text Where is order A1001?
	// 2 assistant: tool_call order
	// 3 tool: tool_result order
	// 4 assistant: text It was sent on Monday.
	// 2 <nil>
	// 0 user: text The user asked for order A1001, which was sent.
	// 4 assistant: text It was sent on Monday.
}

// topics is a custom projection: it counts words with a capital letter.
var topics = projection.Projection[map[string]int]{
	Name: "shop:topics", Version: 1,
	Apply: func(topics *map[string]int, e *event.Event) error {
		m, ok, err := event.Decode[event.Message](e)
		if !ok || err != nil {
			return err
		}
		if *topics == nil {
			*topics = map[string]int{}
		}
		for word := range strings.FieldsSeq(m.Text()) {
			if word = strings.Trim(word, ".?"); word != strings.ToLower(word) {
				(*topics)[word]++
			}
		}
		return nil
	},
}

// A custom projection is loaded as the projections of this package are.
func ExampleProjection() {
	ctx := context.Background()
	log := refund()
	defer func() { _ = log.Close() }()

	alone, err := projection.Load(ctx, log, "refund", topics)
	fmt.Println(alone.State, err)

	both, err := projection.LoadSet(ctx, log, "refund", projection.Of("shop:mine", topics, projection.Usage()))
	if err != nil {
		panic(err)
	}
	usage, _ := projection.State(both, projection.Usage())
	fmt.Println(usage.Total.Usage.OutputTokens, "tokens after", both.Explain.Events, "events")
	// Output:
	// map[A1001:1 It:1 Monday:1 Where:1] <nil>
	// 15 tokens after 4 events
}

// A program resumes a session, follows it and appends snapshots, so that the next
// resume reads little.
func ExampleResume() {
	ctx := context.Background()
	log := refund()
	defer func() { _ = log.Close() }()
	set := projection.Of("shop:mine", topics, projection.History())

	live, err := projection.Resume(ctx, log, "refund", set)
	if err != nil {
		panic(err)
	}
	teller(log)(event.UserMessage("And order B2002?"))
	if err := live.Follow(ctx); err != nil {
		panic(err)
	}
	seen, _ := projection.State(live, topics)
	fmt.Println((*seen)["B2002"], "at event", live.Head.Seq)
	snapshot, taken, err := live.Snapshot(ctx, projection.Request{Trigger: projection.TurnEnd, Body: true})
	fmt.Println(snapshot.Seq, taken, err)

	next, err := projection.Resume(ctx, log, "refund", set)
	if err != nil {
		panic(err)
	}
	for _, part := range next.Explain.Parts {
		fmt.Println(part.Projection, "from the snapshot of event", part.From.Covers)
	}
	fmt.Println("events read:", next.Explain.Events)
	// Output:
	// 1 at event 5
	// 5 true <nil>
	// shop:topics from the snapshot of event 5
	// history from the snapshot of event 5
	// events read: 1
}
