//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
)

// growingSession returns two stores with a session a: one of less batches, and one of four
// times as many.
func growingSession(t *testing.T, less int, batch func(i int) []event.Event) growing {
	t.Helper()
	return newGrowing(t, less, 4*less, func(t *testing.T, dir string, batches int) {
		log := eventlog.Open(jsonl.New(filepath.Join(dir, "store"), jsonl.Options{NoSync: true}))
		for i := range batches {
			if _, err := log.Append(t.Context(), "a", eventlog.Any(), batch(i)...); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A replay needs memory for the states only, however many events there are.
func TestMemoryOfAReplay(t *testing.T) {
	t.Parallel()
	g := growingSession(t, testsize.Pick(3, 5, 13), func(int) (patches []event.Event) {
		for i := range 2_000 {
			patches = append(patches, event.New(event.CustomPatch{Patch: fmt.Appendf(nil, `[{"op":"add","path":"","value":%d}]`, i)}))
		}
		return patches
	})
	g.want(t, 8*mebi, 0, "--store store state replay a")
}

// A page for people needs a few bytes per turn, however many turns there are.
func TestMemoryOfManyTurns(t *testing.T) {
	t.Parallel()
	less := testsize.Pick(2, 2, 25) // batches of 2,000 turns
	g := growingSession(t, less, func(int) (turns []event.Event) {
		for range 2_000 {
			turns = append(turns, event.UserMessage("a"), event.AssistantMessage("b"))
		}
		return turns
	})
	for _, command := range testsize.Pick([]string{"show a"}, []string{"show a"}, []string{"show a", "export a --format markdown"}) {
		g.want(t, 3*less*2_000*40, 0, "--store store "+command)
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
// session needs none for them. The smaller session has about as much as a history keeps.
func TestMemoryOfALongHistory(t *testing.T) {
	t.Parallel()
	g := growingSession(t, testsize.Pick(9, 9, 20), longCalls)
	const most = 16 * mebi
	want := func(most int, commands ...string) {
		t.Helper()
		for i, command := range commands {
			if testsize.Every(i, 5) {
				g.want(t, most, 0, "--store store "+command)
			}
		}
	}
	size := testsize.Of()
	if size != testsize.Short {
		want(0, "runlog --tree a", "runlog a")
	}
	if size != testsize.Usual { // it reads the history from a snapshot
		want(most, "history a --json", "history a", "export a --format openai", "export a --format responses", "export a --format anthropic")
	}
	if size != testsize.Short {
		g.run(t, "--store store state snapshot a")
		want(most, "history a --json", "export a --format openai")
	}
}
