package repair_test

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
	"github.com/convlog/convlog/upkeep/repair"
)

// A disk damages the second of three events. The others are saved into a new session.
func ExampleSession() {
	dir, err := os.MkdirTemp("", "convlog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	for _, text := range []string{"one", "two", "three"} {
		if _, err := l.Append(ctx, "order-42", eventlog.Any(), event.UserMessage(text)); err != nil {
			log.Fatal(err)
		}
	}
	file := filepath.Join(dir, "order-42.jsonl")
	lines, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(lines, []byte(`"two"`), []byte(`"2wo"`), 1), 0o600); err != nil {
		log.Fatal(err)
	}
	report, err := repair.Session(ctx, l, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.As, report.Kept)
	for e, err := range l.Read(ctx, report.As, eventlog.All()) {
		fmt.Println(e.Seq, e.Type, err)
	}
	// Output:
	// order-42-salvaged 2
	// 1 message_added <nil>
	// 2 lost <nil>
	// 3 message_added <nil>
}
