package formats_test

import (
	"io"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

// request is a request shape that sessions can be exported to.
type request struct {
	name   string
	render func([]projection.Entry, func(event.BlobRef) ([]byte, error)) (jsontext.Value, error)
	valid  func(jsontext.Value) error
	// calls and results are the types of calls and results in the request.
	calls, results string
}

var requests = []request{
	{"anthropic", func(h []projection.Entry, blob func(event.BlobRef) ([]byte, error)) (jsontext.Value, error) {
		return anthropic.Messages(h, anthropic.Options{Blob: blob})
	}, modelapi.CheckMessages, "tool_use", "tool_result"},
	{"openai", func(h []projection.Entry, blob func(event.BlobRef) ([]byte, error)) (jsontext.Value, error) {
		return openai.Chat(h, openai.Options{Blob: blob})
	}, modelapi.CheckChat, "function", "tool"},
	{"responses", func(h []projection.Entry, blob func(event.BlobRef) ([]byte, error)) (jsontext.Value, error) {
		return openai.Responses(h, openai.Options{Blob: blob})
	}, modelapi.CheckResponses, "function_call", "function_call_output"},
}

// Law: for every format, the history at each event of a session is a valid request in
// every shape. The request has all calls and one result per call.
func TestEverySessionIsAValidRequest(t *testing.T) {
	for _, format := range formats.All() {
		t.Run(format.Name(), func(t *testing.T) {
			log := importtest.NewLog(t)
			importtest.Files(t, log, format, folders(t, format)...)
			total := 0
			for _, session := range importtest.Sessions(t, log) {
				for _, e := range importtest.Events(t, log, session) {
					history := importtest.History(t, log, session, projection.Options{At: e.Seq})
					for _, r := range requests {
						raw := r.check(t, log, session, history)
						if t.Failed() {
							t.Fatalf("%s at %d as %s: %s", session, e.Seq, r.name, raw)
						}
					}
					total += len(history)
				}
			}
			if total == 0 {
				t.Error("the history of all sessions is empty")
			}
		})
	}
}

// check renders a history and checks the request.
func (r *request) check(t *testing.T, log *eventlog.Log, session string, history []projection.Entry) jsontext.Value {
	t.Helper()
	raw, err := r.render(history, func(ref event.BlobRef) ([]byte, error) {
		body, err := log.OpenBlob(t.Context(), ref.Blob)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		return io.ReadAll(body)
	})
	if err != nil {
		t.Errorf("%s: %v", session, err)
	} else if err := r.valid(raw); err != nil {
		t.Errorf("%s: %v", session, err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	calls, kinds := 0, kindsIn(v, nil)
	for i := range history {
		calls += len(history[i].Message.ToolCalls())
	}
	if gotCalls, gotResults := count(kinds, r.calls), count(kinds, r.results); gotCalls != calls || gotResults != calls {
		t.Errorf("%s: the request has %d calls and %d results, the history has %d calls", session, gotCalls, gotResults, calls)
	}
	return raw
}

// kindsIn returns the types and roles of all objects in a request, except in the
// arguments of calls.
func kindsIn(v any, kinds []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && (name == "type" || name == "role") {
				kinds = append(kinds, s)
			} else if name != "input" || v["type"] == nil {
				kinds = kindsIn(member, kinds)
			}
		}
	case []any:
		for _, element := range v {
			kinds = kindsIn(element, kinds)
		}
	}
	return kinds
}

func count(kinds []string, kind string) int {
	return len(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != kind }))
}
