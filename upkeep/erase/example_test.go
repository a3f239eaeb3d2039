package erase_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// Redacting erases content; the chain still verifies.
func ExampleRedact() {
	dir, err := os.MkdirTemp("", "convlog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	if _, err := l.Append(ctx, "chat", eventlog.New(), event.UserMessage("my password is hunter2")); err != nil {
		log.Fatal(err)
	}
	if _, err := erase.Redact(ctx, l, "chat", []int64{1}, erase.RedactOptions{Reason: "a password"}); err != nil {
		log.Fatal(err)
	}
	e, err := l.Event(ctx, "chat", 1)
	if err != nil {
		log.Fatal(err)
	}
	report, err := verify.Session(ctx, l, "chat")
	fmt.Println(e.Redacted(), string(e.Kept()), len(report.Defects), err)
	// Output:
	// true {"role":"user"} 0 <nil>
}
