// Chat is a chat loop that may be killed at any time: chat DIR SESSION TEXT. Run it
// again, with the same text, and it continues.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, session, text string) error {
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	question := event.New(event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}})
	if _, err := l.Append(ctx, session, eventlog.New(), question); err != nil && !isExists(err) {
		return err
	}
	live, err := projection.Resume(ctx, l, session, projection.Session())
	if err != nil {
		return err
	}
	for {
		pending, err := projection.PendingOf(ctx, l, live)
		if err != nil {
			return err
		}
		for _, call := range pending.Calls {
			if _, err := live.Append(ctx, useTool(dir, call)); err != nil {
				return err
			}
		}
		history, _ := projection.State(live, projection.History())
		messages, err := history.Messages()
		if err != nil {
			return err
		}
		answer, done := askModel(messages)
		if done {
			return show(messages)
		}
		if _, err := live.Append(ctx, answer); err != nil {
			return err
		}
		fmt.Println("appended event", live.Head.Seq)
	}
}
