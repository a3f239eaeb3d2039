//go:build !js

package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

func tempDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "convlog")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// Append at the expected head, read the events, and get a conflict with an old head.
func Example() {
	dir, remove := tempDir()
	defer remove()
	ctx := context.Background()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()

	head, err := l.Append(ctx, "order-42", eventlog.New(),
		event.UserMessage("Where is my parcel?"),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{
			event.ToolCall("call-1", "track", []byte(`{"order":42}`)),
		}}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := l.Append(ctx, "order-42", eventlog.At(head), event.ToolOutput("call-1", "track", []byte("out for delivery"), false)); err != nil {
		log.Fatal(err)
	}
	for e, err := range l.Read(ctx, "order-42", eventlog.All()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Seq, e.Type)
	}
	_, err = l.Append(ctx, "order-42", eventlog.At(head), event.UserMessage("Hello?"))
	fmt.Println(errors.Is(err, eventlog.ErrConflict))
	// Output:
	// 1 message_added
	// 2 message_added
	// 3 message_added
	// true
}

// An append may be retried after any error: the same events are stored once.
func ExampleLog_Append_retry() {
	dir, remove := tempDir()
	defer remove()
	ctx := context.Background()
	l := eventlog.Open(sqlite.New(filepath.Join(dir, "s.db")))
	defer l.Close()

	question := event.UserMessage("Are you there?")
	for range 3 {
		head, err := l.Append(ctx, "chat", eventlog.New(), question)
		fmt.Println(head.Seq, err)
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
	// 1 <nil>
}

// Watch yields the stored events, then each new event of any process.
func ExampleLog_Watch() {
	dir, remove := tempDir()
	defer remove()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	if _, err := l.Append(ctx, "chat", eventlog.New(), event.UserMessage("one")); err != nil {
		log.Fatal(err)
	}
	for e, err := range l.Watch(ctx, "chat", 1) {
		if err != nil {
			log.Fatal(err)
		}
		m, _, err := event.Decode[event.Message](&e)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Text())
		if m.Text() == "two" {
			break
		}
		if _, err := l.Append(ctx, "chat", eventlog.Any(), event.UserMessage("two")); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// one
	// two
}
