package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/transfer"
)

// An event with the maximum depth can be snapshotted, rendered and exported.
func TestWhatIsNestedDeeply(t *testing.T) {
	const levels = 1024 - 5 // data, parts, part, arguments, a
	deep := jsontext.Value(`{"a":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`)
	log := importtest.NewLog(t)
	importtest.Say(t, log, "s",
		event.Message{Role: event.User, Parts: []event.Part{event.Text("Hi")}},
		event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c", "n", deep)}},
		event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c", "n")}},
	)
	live, err := projection.Resume(t.Context(), log, "s", projection.Of("test:views", projection.History(), projection.Calls(), projection.Transcript()))
	if err != nil {
		t.Fatal(err)
	}
	if _, taken, err := live.Snapshot(t.Context(), projection.Request{Trigger: projection.Manual, Body: true}); err != nil || !taken {
		t.Fatalf("snapshot: %v, %v", taken, err)
	}
	for _, s := range shapes {
		raw, err := s.render(importtest.History(t, log, "s"))
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := s.check(raw); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	var out bytes.Buffer
	if err := transfer.Export(t.Context(), log, &out, "s"); err != nil {
		t.Fatal(err)
	}
	into := importtest.NewLog(t)
	if _, err := transfer.Import(t.Context(), into, &out); err != nil {
		t.Fatal(err)
	}
	importtest.Same(t, "exported", importtest.Contents(t, log), importtest.Contents(t, into))
}
