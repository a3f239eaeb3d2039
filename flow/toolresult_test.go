package flow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
)

// A long result of a tool is cut for the model, between two characters and with a mark, and is
// whole in an artifact. A long error is cut, too, and whole in the log. Short results stay.
func TestLongResultsOfTools(t *testing.T) {
	long := strings.Repeat("aé", 400) // 1,200 bytes; byte 101 is inside a letter
	results := map[string]func() ([]event.Part, error){
		"long": func() ([]event.Part, error) { return []event.Part{event.Text(long[:600]), event.Text(long[600:])}, nil },
		"mixed": func() ([]event.Part, error) {
			return []event.Part{event.Text(long), {Type: event.ImagePart, MediaType: "image/png", Data: []byte("png")}}, nil
		},
		"short": func() ([]event.Part, error) { return []event.Part{event.Text(long[:99])}, nil },
		"fails": func() ([]event.Part, error) { return nil, errors.New(long) },
	}
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			tool := flow.ToolSpec{Name: "read", Run: func(context.Context, event.Part) ([]event.Part, error) { return result() }}
			a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: flow.Chat[notes](flowtest.Script{flowtest.Say("", event.ToolCall("c1", "read", nil)), flowtest.Say("done")}, flow.Request{}, tool)}
			a.Options.Limits.ToolResult = 101
			out, err := a.Run(t.Context(), "s", flow.Text("go"))
			if err != nil {
				t.Fatal(err)
			}
			got := out.Messages[2].ToolResults()[0]
			text := got.Content[0].Text
			if name == "short" {
				if text != long[:99] || len(out.Artifacts) != 0 {
					t.Fatalf("%q %+v", text, out.Artifacts)
				}
				return
			}
			if kept, mark, ok := strings.Cut(text, "\n["); !ok || kept != long[:100] || !strings.HasPrefix(mark, "cut after 100 of 1200 bytes; ") {
				t.Fatalf("%q", text)
			}
			if len(got.Content) != map[string]int{"long": 1, "mixed": 2, "fails": 1}[name] {
				t.Fatalf("%+v", got.Content)
			}
			if name == "fails" {
				if whole := fmt.Sprintf("%q", long); len(out.Artifacts) != 0 || !got.IsError || !inLog(t, a, whole[1:len(whole)-1]) {
					t.Fatalf("%+v", out.Artifacts)
				}
				return
			}
			if len(out.Artifacts) != 1 || out.Artifacts[0].Kind != "tool_result" || string(out.Artifacts[0].Extra) != `{"call_id":"c1"}` || !strings.Contains(text, out.Artifacts[0].ArtifactID) {
				t.Fatalf("%q %+v", text, out.Artifacts)
			}
			body, err := a.Log.OpenArtifact(t.Context(), out.Artifacts[0])
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			if whole, err := io.ReadAll(body); err != nil || string(whole) != long {
				t.Fatalf("%v %d bytes", err, len(whole))
			}
		})
	}
}

// inLog reports whether an event of the session has a text.
func inLog(t *testing.T, a *flow.Agent[notes], text string) bool {
	t.Helper()
	for e, err := range a.Log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Data), text) {
			return true
		}
	}
	return false
}
