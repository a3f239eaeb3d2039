package fork_test

import (
	"context"
	"fmt"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
)

// conversation is a log with one session of two turns.
func conversation() (log *eventlog.Log, done func()) {
	dir, err := os.MkdirTemp("", "fork")
	if err != nil {
		panic(err)
	}
	log = eventlog.Open(jsonl.New(dir))
	for _, e := range []event.Event{user("Where is A1001?"), assistant("In Hamburg."), user("Refund it."), assistant("No.")} {
		if _, err := log.Append(context.Background(), "order-42", eventlog.Any(), e); err != nil {
			panic(err)
		}
	}
	return log, func() {
		_ = log.Close()
		_ = os.RemoveAll(dir)
	}
}

func print(log *eventlog.Log, session string) {
	for e, err := range log.Read(context.Background(), session, eventlog.All().OnPath()) {
		if err != nil {
			panic(err)
		}
		if m, ok, _ := event.Decode[event.Message](&e); ok {
			fmt.Println(e.Seq, m.Role, m.Parts[0].Text)
		}
	}
}

// Try the second turn again; the first try stays.
func ExampleAt() {
	log, done := conversation()
	defer done()
	ctx := context.Background()
	child, err := fork.At(ctx, log, "order-42", fork.BeforeTurn(1), fork.Options{ID: "order-42-retry", Label: "retry"})
	if err != nil {
		panic(err)
	}
	if _, err := log.Append(ctx, child.ID, eventlog.Any(), user("Refund it, please."), assistant("Done.")); err != nil {
		panic(err)
	}
	print(log, child.ID)
	// Output:
	// 1 user Where is A1001?
	// 2 assistant In Hamburg.
	// 4 user Refund it, please.
	// 5 assistant Done.
}

// Rewind inside a session, and recover.
func ExampleRewind() {
	log, done := conversation()
	defer done()
	ctx := context.Background()
	if _, err := fork.Rewind(ctx, log, "order-42", fork.AtTurn(0), fork.Options{Reason: "wrong answer"}); err != nil {
		panic(err)
	}
	print(log, "order-42")
	moved, err := fork.Recover(ctx, log, "order-42")
	if err != nil {
		panic(err)
	}
	fmt.Println("recovered", moved.To)
	print(log, "order-42")
	// Output:
	// 1 user Where is A1001?
	// 2 assistant In Hamburg.
	// recovered 4
	// 1 user Where is A1001?
	// 2 assistant In Hamburg.
	// 3 user Refund it.
	// 4 assistant No.
}

func ExampleDiff() {
	log, done := conversation()
	defer done()
	ctx := context.Background()
	if _, err := fork.At(ctx, log, "order-42", fork.AtSeq(3), fork.Options{ID: "retry"}); err != nil {
		panic(err)
	}
	if _, err := log.Append(ctx, "retry", eventlog.Any(), assistant("Done.")); err != nil {
		panic(err)
	}
	d, err := fork.Diff(ctx, log, fork.Tip{Session: "order-42"}, fork.Tip{Session: "retry"})
	if err != nil {
		panic(err)
	}
	fmt.Println("in common up to", d.Ancestor.Seq)
	for e, err := range d.B.Events(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Seq, e.Type)
	}
	// Output:
	// in common up to 3
	// 4 session_forked
	// 5 message_added
}
