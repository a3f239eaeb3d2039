package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// A chunk is a JSON object with the fields that are set.
func TestAChunkAsJSON(t *testing.T) {
	id := ulid.MustParse("01K00000000000000000000000")
	for want, c := range map[string]flow.Chunk{
		`{}`: {},
		`{"delta":{"message_id":"01K00000000000000000000000","part":1,"kind":"text","offset":5,"text":"hi"},"attempt":2,"lost":3}`: {
			Delta: &eventlog.Delta{Message: id, Part: 1, Kind: event.TextPart, Offset: 5, Text: "hi"}, Attempt: 2, Lost: 3},
		`{"message":{"role":"user"},"artifact":{"artifact_id":"a"},"progress":{"n":1},"patch":[]}`: {
			Message: &event.Message{Role: event.User}, Artifact: &event.Artifact{ArtifactID: "a"}, Progress: map[string]int{"n": 1}, Patch: jsontext.Value(`[]`)},
		`{"snapshot_id":"s","end_turn":{"turn_id":"01K00000000000000000000000","status":"completed","stop_reason":"stop","snapshot_id":"s"}}`: {
			Snapshot: "s", EndTurn: &flow.TurnEnd{Turn: id, Status: event.TurnStatusCompleted, StopReason: "stop", Snapshot: "s"}},
	} {
		got, err := json.Marshal(c)
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s, want\n%s", err, got, want)
		}
	}
}

// The last chunk of a turn has its end and its snapshot.
func TestTheLastChunk(t *testing.T) {
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: twice(echo(nil))}
	h, err := a.Send(t.Context(), "s", flow.Text("hello"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var last flow.Chunk
	for c, err := range h.Receive() {
		if err != nil {
			t.Fatal(err)
		}
		if last = c; c.Snapshot != "" {
			kinds = append(kinds, "snapshot")
		}
	}
	if last.EndTurn == nil || last.Snapshot != h.Ref().Snapshot || last.EndTurn.Snapshot != last.Snapshot || strings.Join(kinds, " ") != "snapshot" {
		t.Fatalf("%+v, %v", last, kinds)
	}
}
