package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

// Another program changes a letter of an event.
func ExampleSession() {
	dir, err := os.MkdirTemp("", "convlog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	if _, err := l.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Refund 10."), event.AssistantMessage("Done.")); err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(dir, "order-42.jsonl")
	lines, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(lines, []byte("10."), []byte("90."), 1), 0o600); err != nil {
		log.Fatal(err)
	}
	report, err := verify.Session(ctx, l, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range report.Defects {
		fmt.Println(d.Rule, "at byte", d.Offset)
	}
	// Output:
	// crc at byte 0
}
