package anthropic_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/projection"
)

func history(messages ...event.Message) (h []projection.Entry) {
	for i, m := range messages {
		h = append(h, projection.Entry{Seq: int64(i + 1), Message: m})
	}
	return h
}

func by(role event.Role, parts ...event.Part) event.Message {
	m := event.Message{Role: role, Parts: parts}
	if role == event.Assistant {
		m.Provider, m.Model = "anthropic", "m1"
	}
	return m
}

func text(s string) event.Part { return event.Text(s) }

func call(id string) event.Part {
	return event.ToolCall(id, "Bash", []byte(`{"n":9007199254740993}`))
}

func failed(p event.Part) event.Part {
	p.IsError = true
	return p
}

// serverCall is a call of a provider's tool, and serverResult its result.
func serverCall(n, tool string) event.Part {
	return event.Part{Type: event.ServerToolCallPart, CallID: "srvtoolu_" + n, Name: tool}
}

func serverResult(n, tool, content string) event.Part {
	return event.Part{Type: event.ServerToolResultPart, CallID: "srvtoolu_" + n, Name: tool, Content: []event.Part{event.Opaque("k", []byte(content))}}
}

var png = []byte("\x89PNG\r\n\x1a\n")

func TestMessages(t *testing.T) {
	const (
		system, developer, user, assistant, tool = event.System, event.Developer, event.User, event.Assistant, event.Tool

		useC = `{"type":"tool_use","id":"c","name":"Bash","input":{"n":9007199254740993}}`
		hi   = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
	)
	for _, test := range []struct {
		name    string
		history []event.Message
		want    string
	}{
		{"nothing", nil, `{"messages":[]}`},
		{
			"leading system messages are the system text, later ones are user text",
			[]event.Message{by(system, text("Be brief.")), by(developer, text("Go.")), by(user, text("Hi")), by(system, text("Be kind."))},
			`{"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Go."}],` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"Be kind."}]}]}`,
		},
		{
			"consecutive messages are joined, results first",
			[]event.Message{
				by(user, text("Hi")), by(assistant, text("a"), call("c")), by(assistant, text("b")),
				by(user, text("wait")), by(tool, event.ToolResult("c", "Bash", text("ok"), text(" \n"))), by(user, text("go")),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"a"},` + useC + `,{"type":"text","text":"b"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"ok"}]},` +
				`{"type":"text","text":"wait"},{"type":"text","text":"go"}]}]}`,
		},
		{
			"results in the order of their calls",
			[]event.Message{
				by(user, text("Hi")), by(assistant, call("c"), call("d")), by(tool, failed(event.ToolResult("d", ""))), by(tool, event.ToolResult("c", "")),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `,{"type":"tool_use","id":"d","name":"Bash","input":{"n":9007199254740993}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"d","is_error":true}]}]}`,
		},
		{
			"a call without a result, and a result without a call",
			[]event.Message{by(user, text("Hi")), by(assistant, call("c")), by(tool, event.ToolResult("x", "", text("?")))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",` +
				`"content":[{"type":"text","text":"[No result: the call was interrupted.]"}],"is_error":true}]}]}`,
		},
		{
			"duplicate and invalid ids, an invalid name, invalid arguments",
			[]event.Message{
				by(user, text("Hi")), by(assistant, call("c"), event.ToolCall("c", "a b", []byte(`"ls"`))),
				by(tool, event.ToolResult("c", "", text("1"))), by(tool, event.ToolResult("c", "", text("2"))), by(assistant, event.ToolCall("ü", "x", nil)),
			},
			`{"messages":[` + hi + `,{"role":"assistant","content":[` + useC + `,{"type":"tool_use","id":"c_2","name":"a_b_c8687a08aa5d","input":{"input":"ls"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"}]},{"type":"tool_result","tool_use_id":"c_2","content":[{"type":"text","text":"2"}]}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"__607474ca475a","name":"x","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"__607474ca475a","content":[{"type":"text","text":"[No result: the call was interrupted.]"}],"is_error":true}]}]}`,
		},
		{
			"thinking is verbatim, and removed at the end",
			[]event.Message{by(user, text("Hi")), by(assistant, event.Reasoning("", "c2lnPT0="), event.Part{Type: event.ReasoningPart, Encrypted: "eA==", Redacted: true},
				event.Reasoning("unsigned", ""), text("a"), event.Reasoning("late", "c2ln"))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2lnPT0="},{"type":"redacted_thinking","data":"eA=="},{"type":"text","text":"a"}]}]}`,
		},
		{
			"thinking of other models",
			[]event.Message{by(user, text("Hi")), {Role: assistant, Provider: "google", Parts: []event.Part{event.Reasoning("x", "c2ln"), text("a")}}},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"text","text":"a"}]}]}`,
		},
		{
			"messages without content",
			[]event.Message{by(user, text("")), by(user, text("Hi")), by(assistant, event.Reasoning("x", "c2ln")), by(assistant, event.Opaque("?", []byte(`1`))), by(user, text("You?"))},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"You?"}]}]}`,
		},
		{
			"the assistant comes first",
			[]event.Message{by(assistant, text("Hello."))},
			`{"messages":[{"role":"user","content":[{"type":"text","text":"[The conversation begins with the assistant.]"}]},{"role":"assistant","content":[{"type":"text","text":"Hello."}]}]}`,
		},
		{
			"bodies",
			[]event.Message{by(user,
				event.Part{Type: event.ImagePart, MediaType: "image/jpeg", Blob: event.BlobRef{Blob: "sha256:png", Bytes: 8}},
				event.Part{Type: event.ImagePart, URL: "https://example.org/a.png"},
				event.Part{Type: event.ImagePart, MediaType: "image/tiff", Data: []byte("II*")},
				event.Part{Type: event.DocumentPart, Name: "a.pdf", MediaType: "application/pdf", Data: []byte("%PDF-1")},
				event.Part{Type: event.DocumentPart, Name: "a.md", MediaType: "text/markdown; charset=utf-8", Data: []byte("# A")},
				event.Part{Type: event.AudioPart, MediaType: "audio/wav", Data: []byte("RIFF")},
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
			"tools of the provider",
			[]event.Message{by(user, text("Hi")), by(assistant,
				event.Part{Type: event.ServerToolCallPart, CallID: "srvtoolu_1", Name: "web_search", Arguments: []byte(`{"query":"q"}`)},
				event.Opaque("web_search_tool_result", []byte(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}],"caller":{}}`)),
				event.Part{Type: event.ServerToolCallPart, CallID: "srvtoolu_2", Name: "web_search"}, text("a"))},
			`{"messages":[` + hi + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u"}]},{"type":"text","text":"a"}]}]}`,
		},
		{
			"server results are lists or objects, depending on the tool",
			[]event.Message{by(user, text("Hi")), by(assistant,
				serverCall("1", "web_search"), serverResult("1", "web_search", `{"type":"web_search_result"}`),
				serverCall("2", "web_search"), serverResult("2", "web_search", `{"type":"web_search_tool_result_error"}`),
				serverCall("3", "web_fetch"), serverResult("3", "web_fetch", `{"type":"web_fetch_result"}`),
				serverCall("4", "web_fetch"), serverResult("4", "web_fetch", `[{"type":"web_fetch_result"}]`),
				serverCall("5", "web_search"), serverResult("5", "web_search", `[null]`),
				serverCall("6", "web_search"), serverResult("6", "web_fetch", `{"type":"web_fetch_result"}`),
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
			raw, err := anthropic.Messages(history(test.history...), anthropic.Options{Blob: func(event.BlobRef) ([]byte, error) { return png, nil }})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(raw)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if err := modelapi.CheckMessages(raw); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoHistoryAndNoOptions(t *testing.T) {
	raw, err := anthropic.Messages(nil)
	if want := `{"messages":[]}`; err != nil || string(raw) != want {
		t.Errorf("no history: %s, %v", raw, err)
	}
	if err := modelapi.CheckMessages(raw); err != nil {
		t.Error(err)
	}
}

func TestThinkingOfOtherModel(t *testing.T) {
	h := history(by(event.User, text("Hi")), by(event.Assistant, event.Reasoning("x", "c2ln"), text("a")))
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

func TestMissingBody(t *testing.T) {
	errGone := errors.New("gone")
	h := history(by(event.User, event.Image("image/png", event.BlobRef{Blob: "sha256:x", Bytes: 9})))
	_, err := anthropic.Messages(h, anthropic.Options{Blob: func(event.BlobRef) ([]byte, error) { return nil, errGone }})
	if !errors.Is(err, errGone) {
		t.Errorf("error is %v", err)
	}
	raw, err := anthropic.Messages(h)
	if want := `{"messages":[{"role":"user","content":[{"type":"text","text":"[image, image/png, 9 bytes]"}]}]}`; err != nil || string(raw) != want {
		t.Errorf("without Blob: %s, %v", raw, err)
	}
}

func TestCheckRejects(t *testing.T) {
	const (
		hi         = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
		toolUse    = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`
		toolResult = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`
	)
	of := func(messages string) string { return `{"messages":[` + messages + `]}` }
	if err := modelapi.CheckMessages([]byte(of(hi + "," + toolUse + "," + toolResult))); err != nil {
		t.Fatalf("a valid request: %v", err)
	}
	for name, raw := range map[string]string{
		"not an object":                  `[]`,
		"not JSON":                       `{"messages":[`,
		"no messages":                    `{}`,
		"an unknown member":              `{"messages":[],"model":"m"}`,
		"an empty system text":           `{"system":[{"type":"text","text":" "}],"messages":[]}`,
		"no system text":                 `{"system":[],"messages":[]}`,
		"the assistant first":            of(toolUse + "," + toolResult),
		"the user twice":                 of(hi + "," + hi),
		"another role":                   of(`{"role":"tool","content":[{"type":"text","text":"Hi"}]}`),
		"an empty message":               of(`{"role":"user","content":[]}`),
		"an empty text":                  of(`{"role":"user","content":[{"type":"text","text":"\n"}]}`),
		"an unknown member of a block":   of(`{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{}}]}`),
		"an unknown block":               of(`{"role":"user","content":[{"type":"sound"}]}`),
		"a call without a result":        of(hi + "," + toolUse),
		"a call followed by text":        of(hi + "," + toolUse + "," + hi),
		"a result without a call":        of(toolResult),
		"two results":                    of(hi + "," + toolUse + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},{"type":"tool_result","tool_use_id":"c"}]}`),
		"a result after text":            of(hi + "," + toolUse + `,{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"tool_result","tool_use_id":"c"}]}`),
		"a duplicate id":                 of(hi + "," + toolUse + "," + toolResult + "," + toolUse + "," + toolResult),
		"input is not an object":         of(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":[]}]},` + toolResult),
		"an invalid id":                  of(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c.c","name":"n","input":{}}]}`),
		"thinking at the end":            of(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`),
		"thinking without a signature":   of(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":""},{"type":"text","text":"a"}]}`),
		"a server call without a result": of(hi + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`),
		"a server result without a call": of(hi + `,{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}]}`),
		"an image of a wrong type":       of(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"AA=="}}]}`),
		"an image of the assistant":      of(hi + `,{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://example.org"}}]}`),
	} {
		if err := modelapi.CheckMessages([]byte(raw)); !errors.Is(err, modelapi.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
