package projection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// A result follows its call in the history, however many items, and however large ones, are
// between them.
func TestResultsFarFromTheirCalls(t *testing.T) {
	for i, x := range []struct{ calls, bytes int }{{3000, 10}, {300, 60 << 10}, {600, 20 << 10}} {
		if i > testsize.Pick(0, 1, 2) {
			break
		}
		var events []event.Event
		for i := range x.calls {
			events = append(events, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(fmt.Sprint(i), "read", nil)}}))
		}
		for i := range x.calls {
			text := event.Text(fmt.Sprint(i, strings.Repeat("x", x.bytes)))
			events = append(events, event.New(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(fmt.Sprint(i), "read", text)}}))
		}
		log := eventlog.Open(memory.New())
		for some := range slices.Chunk(events, 100) {
			if _, err := log.Append(t.Context(), "s", eventlog.Any(), some...); err != nil {
				t.Fatal(err)
			}
		}
		view, err := projection.Load(t.Context(), log, "s", projection.History(), projection.Options{})
		if err != nil {
			t.Fatal(err)
		}
		messages, err := view.State.Messages()
		if err != nil || len(messages) != 2*x.calls {
			t.Fatalf("%d calls: %d messages, %v", x.calls, len(messages), err)
		}
		for i := range x.calls {
			result := messages[2*i+1]
			if result.Made != "" || !strings.HasPrefix(result.Message.Parts[0].Content[0].Text, fmt.Sprint(i, "x")) {
				t.Fatalf("%d calls: call %d has the result %.100v", x.calls, i, result)
			}
		}
		all, err := collect(projection.Entries(t.Context(), log, "s", projection.RenderOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(messages, all); diff != "" {
			t.Errorf("%d calls: Entries differs from Messages:\n%.2000s", x.calls, diff)
		}
	}
}
