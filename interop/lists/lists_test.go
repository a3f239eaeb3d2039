package lists_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/interop/lists"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

// load imports a file with the content. The test fails if the import does.
func load(t testing.TB, log *eventlog.Log, content string) interop.Result {
	t.Helper()
	return importtest.Load(t, log, lists.Format{}, "talk.json", content)
}

// draw draws a short line for each event of a session.
func draw(t testing.TB, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range importtest.Events(t, log, session) {
		lines = append(lines, drawEvent(t, &e))
	}
	return lines
}

func drawEvent(t testing.TB, e *event.Event) string {
	t.Helper()
	if h, ok, _ := event.Decode[event.HeadMove](e); ok {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	if e.Redacted() {
		return string(e.Type) + " redacted"
	}
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return fmt.Sprintf("%s %s", e.Type, e.Data)
	}
	line := string(m.Role)
	if m.Extra != nil {
		line += " " + string(m.Extra)
	}
	for i := range m.Parts {
		text, err := json.Marshal(&m.Parts[i])
		if err != nil {
			t.Fatal(err)
		}
		line += " " + string(text)
	}
	return line
}

// exported renders the effective history of a session.
func exported(t testing.TB, log *eventlog.Log, session, format string) jsontext.Value {
	t.Helper()
	return rendered(t, log, importtest.History(t, log, session), format)
}

func rendered(t testing.TB, log *eventlog.Log, entries []projection.Entry, format string) (raw jsontext.Value) {
	t.Helper()
	blob := func(ref event.BlobRef) ([]byte, error) {
		r, err := log.OpenBlob(t.Context(), ref.Blob)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	var err error
	check := modelapi.CheckChat
	switch format {
	case "openai":
		raw, err = openai.Chat(entries, openai.Options{Blob: blob})
	case "responses":
		raw, err = openai.Responses(entries, openai.Options{Blob: blob})
		check = modelapi.CheckResponses
	default:
		raw, err = anthropic.Messages(entries, anthropic.Options{Blob: blob})
		check = modelapi.CheckMessages
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := check(raw); err != nil {
		t.Fatalf("%s: %v in\n%s", format, err, raw)
	}
	return raw
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// A list in the form of the exporters comes back byte for byte.
func TestWhatIsExportedComesBack(t *testing.T) {
	for name, c := range map[string]struct{ format, list string }{
		"chat": {"openai", `{"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]},` +
			`{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1.50,\"n\":null}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"a pixel"},{"role":"tool","tool_call_id":"c2","content":""},{"role":"assistant","content":"One <pixel>."},` +
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"}}]}]}`},
		"responses": {"responses", `{"input":[{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"https://example.org/a.png"}]},` +
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"Two looks."}],"encrypted_content":"eHl6"},` +
			`{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":1}"},{"type":"function_call","call_id":"c2","name":"look","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"a pixel"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_image","image_url":"data:image/png;base64,` + pixel + `"}]},` +
			`{"type":"reasoning","summary":[],"encrypted_content":"enl6"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One"},{"type":"output_text","text":"pixel."}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Really."}]}]}`},
		"anthropic": {"anthropic", `{"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}},` +
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"A note."},"title":"note.txt"}]},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"Two looks.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHl6"},{"type":"tool_use","id":"c1","name":"look","input":{"at":1}},{"type":"tool_use","id":"c2","name":"look","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"no"}],"is_error":true},{"type":"tool_result","tool_use_id":"c2"},{"type":"text","text":"Go on."}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"One pixel."}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			log := importtest.NewLog(t)
			got := load(t, log, c.list)
			if got.Raw > 0 || len(got.Rejected) > 0 || len(got.Sessions) != 1 {
				t.Fatalf("imported: %+v", got)
			}
			if diff := cmp.Diff(c.list, string(exported(t, log, got.Sessions[0], c.format))); diff != "" {
				t.Errorf("exported again (+):\n%s", diff)
			}
			if again := load(t, log, c.list); again.Events != 0 {
				t.Errorf("imported again: %+v", again)
			}
			start, err := log.Head(t.Context(), got.Sessions[0])
			if err != nil || start.Seq != int64(got.Events) {
				t.Errorf("head is %d after %d events, %v", start.Seq, got.Events, err)
			}
		})
	}
}
