//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

// fill appends batches of events to session a of a new store, and returns the store's
// path.
func fill(t *testing.T, batches int, batch func(i int) []event.Event) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	log := eventlog.Open(jsonl.New(dir, jsonl.Options{Sync: jsonl.Never}))
	for i := range batches {
		if _, err := log.Append(t.Context(), "a", eventlog.Any(), batch(i)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A replay needs memory for the states only, however many events there are.
func TestMemoryOfAReplay(t *testing.T) {
	dir := fill(t, 50, func(int) (patches []event.Event) {
		for i := range 2_000 {
			patches = append(patches, event.New(event.CustomPatch{Patch: fmt.Appendf(nil, `[{"op":"add","path":"","value":%d}]`, i)}))
		}
		return patches
	})
	wantPeak(t, baseMemory+20*mebi, 32*mebi, 0, "--store", dir, "state", "replay", "a")
}

// A page for people needs a few bytes per turn, however many turns there are.
func TestMemoryOfManyTurns(t *testing.T) {
	dir := fill(t, 100, func(int) (turns []event.Event) {
		for range 2_000 {
			turns = append(turns, event.UserMessage("a"), event.AssistantMessage("b"))
		}
		return turns
	})
	for _, command := range []string{"show a", "export a --format markdown"} {
		wantPeak(t, baseMemory+8*mebi, 20*mebi, 0, append([]string{"--store", dir}, strings.Fields(command)...)...)
	}
}

// longCalls returns a message, calls with long results, and foreign events of the same
// length.
func longCalls(i int) []event.Event {
	const calls, length = 16, 64 << 10
	text := strings.Repeat("ab cd ", length/6)
	events := []event.Event{event.UserMessage("Go.")}
	for k := range calls {
		id := fmt.Sprintf("call_%d_%d", i, k)
		events = append(events,
			event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "read", nil)}}),
			event.New(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(id, "read", event.Text(text))}}),
			event.Event{Type: "other:note", Data: fmt.Appendf(nil, `{"text":%q}`, text)})
	}
	return append(events, event.AssistantMessage("Done."))
}

// A history needs memory for a part of its messages, also from a snapshot. The tree of a
// session needs none for them.
func TestMemoryOfALongHistory(t *testing.T) {
	dir := fill(t, 80, longCalls)
	for _, step := range []struct {
		most     int
		commands []string
	}{
		{baseMemory + 8*mebi, []string{"runlog --tree a", "runlog a"}},
		{baseMemory + 56*mebi, []string{
			"history a", "history a --json",
			"export a --format openai", "export a --format responses", "export a --format anthropic",
		}},
		{1 << 30, []string{"state snapshot a"}},
		{baseMemory + 56*mebi, []string{"history a --json", "export a --format openai"}},
	} {
		for _, command := range step.commands {
			wantPeak(t, step.most, 32*mebi, 0, append([]string{"--store", dir}, strings.Fields(command)...)...)
		}
	}
}
