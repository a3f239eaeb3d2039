// Branch forks a session, compares the two branches, and rewinds one: branch DIR.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	for _, e := range []event.Event{
		event.UserMessage("Where is my parcel?"), event.AssistantMessage("In Leipzig."),
		event.UserMessage("When will it be here?"), event.AssistantMessage("Never."),
	} {
		if _, err := l.Append(ctx, "parcel", eventlog.Any(), e); err != nil {
			return err
		}
	}
	child, err := fork.At(ctx, l, "parcel", fork.BeforeTurn(1), fork.Options{ID: "retry", Label: "more polite"})
	if err != nil {
		return err
	}
	if _, err := l.Append(ctx, child.ID, eventlog.At(child.Head), event.UserMessage("When will it be here, please?")); err != nil {
		return err
	}
	d, err := fork.Diff(ctx, l, fork.Tip{Session: "parcel"}, fork.Tip{Session: child.ID})
	if err != nil {
		return err
	}
	fmt.Printf("common up to event %d, then %d and %d events\n", d.Ancestor.Seq, d.A.Len(), d.B.Len())
	moved, err := fork.Rewind(ctx, l, "parcel", fork.AtTurn(0))
	if err != nil {
		return err
	}
	fmt.Println("rewound from event", moved.From, "to", moved.To)
	for e, err := range l.Read(ctx, "parcel", eventlog.All().OnPath()) {
		if err != nil {
			return err
		}
		fmt.Println(e.Seq, e.Type)
	}
	return nil
}
