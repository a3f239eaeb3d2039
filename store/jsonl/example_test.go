package jsonl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func Example() {
	dir, err := os.MkdirTemp("", "conversations")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()

	log := eventlog.Open(jsonl.New(dir))
	hello := event.UserMessage("hello")
	if _, err := log.Append(ctx, "Order/42", eventlog.New(), hello); err != nil {
		panic(err)
	}
	if err := log.Close(); err != nil {
		panic(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		fmt.Println(filepath.Base(name))
	}
	// Output: %4frder%2f42.jsonl
}
