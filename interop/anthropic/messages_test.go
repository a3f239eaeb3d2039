package anthropic_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/projection"
)

func history(messages ...eventlog.Message) (h []projection.Entry) {
	for i, m := range messages {
		h = append(h, projection.Entry{Seq: int64(i + 1), Message: m})
	}
	return h
}

func by(role eventlog.Role, parts ...eventlog.Part) eventlog.Message {
	m := eventlog.Message{Role: role, Parts: parts}
	if role == eventlog.Assistant {
		m.Provider, m.Model = "anthropic", "m1"
	}
	return m
}

func text(s string) eventlog.Part { return eventlog.Text(s) }

func call(id string) eventlog.Part {
	return eventlog.ToolCall(id, "Bash", []byte(`{"n":9007199254740993}`))
}

func failed(p eventlog.Part) eventlog.Part {
	p.IsError = true
	return p
}

// served and gave are a call of the provider's tool, and what it gave.
func served(n, tool string) eventlog.Part {
	return eventlog.Part{Type: eventlog.ServerToolCallPart, CallID: "srvtoolu_" + n, Name: tool}
}

func gave(n, tool, content string) eventlog.Part {
	return eventlog.Part{Type: eventlog.ServerToolResultPart, CallID: "srvtoolu_" + n, Name: tool, Content: []eventlog.Part{eventlog.Opaque("k", []byte(content))}}
}

var png = []byte("\x89PNG\r\n\x1a\n")

func TestMessages(t *testing.T) {
	const (
		system, developer, user, assistant, tool = eventlog.System, eventlog.Developer, eventlog.User, eventlog.Assistant, eventlog.Tool

		useC = `{"type":"tool_use","id":"c","name":"Bash","input":{"n":9007199254740993}}`
		hi   = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
	)
	for _, test := range []struct {
		name    string
		history []eventlog.Message
		want    string
	}{
		{"nothing", nil, `{"messages":[]}`},
		{
			"what leads is the system text, what comes later the user's",
			[]eventlog.Message{by(system, text("Be brief.")), by(developer, text("Go.")), by(user, text("Hi")), by(system, text("Be kind."))},
			`{"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Go."}],` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"Be kind."}]}]}`,
		},
		{
			"neighbours are one message, results first",
			[]eventlog.Message{
				by(user, text("Hi")), by(assistant, text("a"), call("c")), by(assistant, text("b")),
				by(user, text("wait")), by(tool, eventlog.ToolResult("c", "Bash", text("ok"), text(" \n"))), by(user, text("go")),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"a"},` + useC + `,{"type":"text","text":"b"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"ok"}]},` +
				`{"type":"text","text":"wait"},{"type":"text","text":"go"}]}]}`,
		},
		{
			"results in the order of their calls",
			[]eventlog.Message{
				by(user, text("Hi")), by(assistant, call("c"), call("d")), by(tool, failed(eventlog.ToolResult("d", ""))), by(tool, eventlog.ToolResult("c", "")),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `,{"type":"tool_use","id":"d","name":"Bash","input":{"n":9007199254740993}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"d","is_error":true}]}]}`,
		},
		{
			"a call without a result, and a result without a call",
			[]eventlog.Message{by(user, text("Hi")), by(assistant, call("c")), by(tool, eventlog.ToolResult("x", "", text("?")))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",` +
				`"content":[{"type":"text","text":"[No result: the call was interrupted.]"}],"is_error":true}]}]}`,
		},
		{
			"ids that repeat or that the API refuses, a name and arguments too",
			[]eventlog.Message{
				by(user, text("Hi")), by(assistant, call("c"), eventlog.ToolCall("c", "a b", []byte(`"ls"`))),
				by(tool, eventlog.ToolResult("c", "", text("1"))), by(tool, eventlog.ToolResult("c", "", text("2"))), by(assistant, eventlog.ToolCall("ü", "x", nil)),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `,{"type":"tool_use","id":"c_2","name":"a_b_c8687a08aa5d","input":{"input":"ls"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"}]},{"type":"tool_result","tool_use_id":"c_2","content":[{"type":"text","text":"2"}]}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"__607474ca475a","name":"x","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"__607474ca475a","content":[{"type":"text","text":"[No result: the call was interrupted.]"}],"is_error":true}]}]}`,
		},
		{
			"thinking verbatim, but not at the end",
			[]eventlog.Message{by(user, text("Hi")), by(assistant, eventlog.Reasoning("", "c2lnPT0="), eventlog.Part{Type: eventlog.ReasoningPart, Encrypted: "eA==", Redacted: true},
				eventlog.Reasoning("unsigned", ""), text("a"), eventlog.Reasoning("late", "c2ln"))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2lnPT0="},{"type":"redacted_thinking","data":"eA=="},{"type":"text","text":"a"}]}]}`,
		},
		{
			"thinking of others",
			[]eventlog.Message{by(user, text("Hi")), {Role: assistant, Provider: "google", Parts: []eventlog.Part{eventlog.Reasoning("x", "c2ln"), text("a")}}},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"a"}]}]}`,
		},
		{
			"messages with nothing left",
			[]eventlog.Message{by(user, text("")), by(user, text("Hi")), by(assistant, eventlog.Reasoning("x", "c2ln")), by(assistant, eventlog.Opaque("?", []byte(`1`))), by(user, text("You?"))},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"You?"}]}]}`,
		},
		{
			"an assistant that begins",
			[]eventlog.Message{by(assistant, text("Hello."))},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"[The conversation begins with the assistant.]"}]},{"role":"assistant","content":[{"type":"text","text":"Hello."}]}]}`,
		},
		{
			"bodies",
			[]eventlog.Message{by(user,
				eventlog.Part{Type: eventlog.ImagePart, MediaType: "image/jpeg", Blob: eventlog.BlobRef{Blob: "sha256:png", Bytes: 8}},
				eventlog.Part{Type: eventlog.ImagePart, URL: "https://example.org/a.png"},
				eventlog.Part{Type: eventlog.ImagePart, MediaType: "image/tiff", Data: []byte("II*")},
				eventlog.Part{Type: eventlog.DocumentPart, Name: "a.pdf", MediaType: "application/pdf", Data: []byte("%PDF-1")},
				eventlog.Part{Type: eventlog.DocumentPart, Name: "a.md", MediaType: "text/markdown; charset=utf-8", Data: []byte("# A")},
				eventlog.Part{Type: eventlog.AudioPart, MediaType: "audio/wav", Data: []byte("RIFF")},
			)},
			`{"messages":[{"role":"user","content":[` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},` +
				`{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},` +
				`{"type":"text","text":"[image, image/tiff, 3 bytes]"},` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"},"title":"a.pdf"},` +
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# A"},"title":"a.md"},` +
				`{"type":"text","text":"[audio, audio/wav, 4 bytes]"}]}]}`,
		},
		{
			"the provider's own tools",
			[]eventlog.Message{by(user, text("Hi")), by(assistant,
				eventlog.Part{Type: eventlog.ServerToolCallPart, CallID: "srvtoolu_1", Name: "web_search", Arguments: []byte(`{"query":"q"}`)},
				eventlog.Opaque("web_search_tool_result", []byte(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}],"caller":{}}`)),
				eventlog.Part{Type: eventlog.ServerToolCallPart, CallID: "srvtoolu_2", Name: "web_search"}, text("a"))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]},{"type":"text","text":"a"}]}]}`,
		},
		{
			"what the provider's tools gave is a list or an object, as the tool has it",
			[]eventlog.Message{by(user, text("Hi")), by(assistant,
				served("1", "web_search"), gave("1", "web_search", `{"type":"web_search_result"}`),
				served("2", "web_search"), gave("2", "web_search", `{"type":"web_search_tool_result_error"}`),
				served("3", "web_fetch"), gave("3", "web_fetch", `{"type":"web_fetch_result"}`),
				served("4", "web_fetch"), gave("4", "web_fetch", `[{"type":"web_fetch_result"}]`),
				served("5", "web_search"), gave("5", "web_search", `[null]`),
				served("6", "web_search"), gave("6", "web_fetch", `{"type":"web_fetch_result"}`),
				text("a"))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` +
				`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result"}]},` +
				`{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"web_search_tool_result_error"}},` +
				`{"type":"server_tool_use","id":"srvtoolu_3","name":"web_fetch","input":{}},` +
				`{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_3","content":{"type":"web_fetch_result"}},` +
				`{"type":"text","text":"a"}]}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			raw, err := anthropic.Messages(history(test.history...), anthropic.Options{Blob: func(eventlog.BlobRef) ([]byte, error) { return png, nil }})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(raw)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if err := anthropic.Check(raw); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThinkingOfAnotherModel(t *testing.T) {
	h := history(by(eventlog.User, text("Hi")), by(eventlog.Assistant, eventlog.Reasoning("x", "c2ln"), text("a")))
	for model, want := range map[string]string{
		"m1": `{"type":"thinking","thinking":"x","signature":"c2ln"},{"type":"text","text":"a"}`, "m2": `{"type":"text","text":"a"}`,
	} {
		raw, err := anthropic.Messages(h, anthropic.Options{Model: model})
		want = `{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":[` + want + `]}]}`
		if err != nil || string(raw) != want {
			t.Errorf("for %s: %s, %v", model, raw, err)
		}
	}
}

func TestABodyThatIsMissing(t *testing.T) {
	gone := errors.New("gone")
	h := history(by(eventlog.User, eventlog.Image("image/png", eventlog.BlobRef{Blob: "sha256:x", Bytes: 9})))
	_, err := anthropic.Messages(h, anthropic.Options{Blob: func(eventlog.BlobRef) ([]byte, error) { return nil, gone }})
	if !errors.Is(err, gone) {
		t.Errorf("error is %v", err)
	}
	raw, err := anthropic.Messages(h, anthropic.Options{})
	if want := `{"messages":[{"role":"user","content":[{"type":"text","text":"[image, image/png, 9 bytes]"}]}]}`; err != nil || string(raw) != want {
		t.Errorf("without a way to bodies: %s, %v", raw, err)
	}
}

func TestCheckRefuses(t *testing.T) {
	const (
		hi   = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
		use  = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`
		gave = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`
	)
	of := func(messages string) string { return `{"messages":[` + messages + `]}` }
	if err := anthropic.Check([]byte(of(hi + "," + use + "," + gave))); err != nil {
		t.Fatalf("a valid request: %v", err)
	}
	for name, raw := range map[string]string{
		"no object":                         `[]`,
		"no JSON":                           `{"messages":[`,
		"no messages":                       `{}`,
		"an unknown member":                 `{"messages":[],"model":"m"}`,
		"an empty system text":              `{"system":[{"type":"text","text":" "}],"messages":[]}`,
		"no system text":                    `{"system":[],"messages":[]}`,
		"the assistant first":               of(use + "," + gave),
		"the user twice":                    of(hi + "," + hi),
		"another role":                      of(`{"role":"tool","content":[{"type":"text","text":"Hi"}]}`),
		"an empty message":                  of(`{"role":"user","content":[]}`),
		"an empty text":                     of(`{"role":"user","content":[{"type":"text","text":"\n"}]}`),
		"an unknown member of a block":      of(`{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{}}]}`),
		"an unknown block":                  of(`{"role":"user","content":[{"type":"sound"}]}`),
		"a call that is not answered":       of(hi + "," + use),
		"a call that is answered otherwise": of(hi + "," + use + "," + hi),
		"a result without a call":           of(gave),
		"two results":                       of(hi + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"c"}]}`),
		"a result behind text":              of(hi + "," + use + `,{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"tool_result","tool_use_id":"c"}]}`),
		"an id again":                       of(hi + "," + use + "," + gave + "," + use + "," + gave),
		"input that is no object":           of(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":[]}]},` + gave),
		"an id that the API refuses":        of(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c.c","name":"n","input":{}}]}`),
		"thinking at the end":               of(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`),
		"thinking without a signature":      of(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":""},{"type":"text","text":"a"}]}`),
		"a server's call without a result":  of(hi + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`),
		"a server's result without a call":  of(hi + `,{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}]}`),
		"an image of a wrong type":          of(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"AA=="}}]}`),
		"an image of the assistant's":       of(hi + `,{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://example.org"}}]}`),
	} {
		if err := anthropic.Check([]byte(raw)); !errors.Is(err, anthropic.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
