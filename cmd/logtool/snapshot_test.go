package main

import (
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
)

// A snapshot covers the newest event, also while other writers append.
func TestASnapshotWhileOthersAppend(t *testing.T) {
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{NoSync: true}))
	defer func() { _ = log.Close() }()
	say := func() {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Error(err)
		}
	}
	say()
	others := 3 // appends that come before a snapshot
	counted := projection.Projection[int]{Name: "test:counted", Version: 1, Apply: func(n *int, e *event.Event) error {
		*n++
		return nil
	}}
	counted.Encode = func(*int) (jsontext.Value, error) {
		if others--; others >= 0 {
			say()
		}
		return jsontext.Value(`0`), nil
	}
	counted.Digest = func(*int) (event.Digest, error) { return "", nil }
	a := &app{out: io.Discard, getenv: func(string) string { return "" }}
	if err := a.snapshot(t.Context(), log, "s", projection.Of("", counted), projection.Request{}); err != nil {
		t.Fatal(err)
	}
	head, err := log.Head(t.Context(), "s")
	if err != nil || head.Seq != 5 {
		t.Errorf("the head is %v (%v), not the snapshot of 4 messages", head, err)
	}
}
