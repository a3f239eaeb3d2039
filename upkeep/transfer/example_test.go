package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// A session moves to another log. Its head has the same hash there.
func ExampleConvert() {
	ctx := context.Background()
	src, dst := eventlog.Open(memory.New()), eventlog.Open(memory.New())
	defer src.Close()
	defer dst.Close()
	head, err := src.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Hello."))
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range transfer.Convert(ctx, dst, src) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Session, r.Stored, r.Head == head)
	}
	// Output:
	// order-42 1 true
}

// An export is a stream of lines.
func ExampleExport() {
	ctx := context.Background()
	src, dst := eventlog.Open(memory.New()), eventlog.Open(memory.New())
	defer src.Close()
	defer dst.Close()
	if _, err := src.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Hello."), event.AssistantMessage("Hello!")); err != nil {
		log.Fatal(err)
	}
	var stream bytes.Buffer
	if err := transfer.Export(ctx, src, &stream, "order-42"); err != nil {
		log.Fatal(err)
	}
	results, err := transfer.Import(ctx, dst, &stream)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[0].Session, results[0].Stored)
	// Output:
	// order-42 2
}
