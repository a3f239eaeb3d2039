//go:build !js

package eventlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// A missing blob prevents neither the redaction of its event nor later appends.
func TestMissingBlob(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	l := eventlog.Open(jsonl.New(dir), eventlog.Options{SpillOver: 100})
	defer l.Close()
	call := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c1", "look", nil)}})
	op := event.New(event.Op{Kind: "llm", Text: strings.Repeat("secret ", 50)})
	if _, err := l.Append(ctx, "s", eventlog.New(), call, op); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	l2 := eventlog.Open(jsonl.New(dir)) // which knows nothing of the call
	defer l2.Close()
	result := event.ToolOutput("c1", "look", []byte("nothing"), false)
	if _, err := l2.Append(ctx, "s", eventlog.Any(), result); err != nil {
		t.Errorf("append behind an event without its body: %v", err)
	}
	if _, err := l2.Event(ctx, "s", 2); !errors.Is(err, eventlog.ErrBlobNotFound) {
		t.Errorf("read: got %v", err)
	}
	if _, err := erase.Redact(ctx, l2, "s", []int64{2}, erase.RedactOptions{Reason: "lost"}); err != nil {
		t.Errorf("redact: %v", err)
	}
	if report, err := verify.Session(ctx, l2, "s"); err != nil || len(report.Defects) > 0 {
		t.Errorf("verify: %v, %v", report.Defects, err)
	}
}

// A fork of nothing is not adopted, wherever it begins.
func TestAdoptForkOfMissingParent(t *testing.T) {
	ctx := context.Background()
	src := eventlog.Open(jsonl.New(t.TempDir()))
	defer src.Close()
	fork := event.New(event.Fork{Parent: "parent"})
	first := event.UserMessage("hello")
	if _, err := src.Append(ctx, "parent", eventlog.New(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Append(ctx, "child", eventlog.New(), fork); err != nil {
		t.Fatal(err)
	}
	dst := eventlog.Open(jsonl.New(t.TempDir()))
	defer dst.Close()
	if _, err := transfer.Adopt(ctx, dst, "child", src.Read(ctx, "child", eventlog.All().Own())); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := dst.Head(ctx, "child"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the child is there: %v", err)
	}
}
