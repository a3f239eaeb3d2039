package openai_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
)

func history(messages ...event.Message) (h []projection.Entry) {
	for i, m := range messages {
		h = append(h, projection.Entry{Seq: int64(i + 1), Message: m})
	}
	return h
}

func by(role event.Role, parts ...event.Part) event.Message {
	return event.Message{Role: role, Parts: parts}
}

func text(s string) event.Part { return event.Text(s) }

func call(id string) event.Part {
	return event.ToolCall(id, "Bash", []byte(`{"n":9007199254740993,"s":"\u00e9\""}`))
}

const (
	system, developer, user, assistant, tool = event.System, event.Developer, event.User, event.Assistant, event.Tool

	hi         = `{"role":"user","content":"Hi"}`
	hiItem     = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}`
	arguments  = `"{\"n\":9007199254740993,\"s\":\"\\u00e9\\\"\"}"`
	callC      = `{"id":"c","type":"function","function":{"name":"Bash","arguments":` + arguments + `}}`
	callItemC  = `{"type":"function_call","call_id":"c","name":"Bash","arguments":` + arguments + `}`
	noResult   = `[No result: the call was interrupted.]`
	imageOfPNG = "data:image/png;base64,iVBORw0KGgo="
)

var bodies = []event.Part{
	{Type: event.ImagePart, MediaType: "image/jpeg", Blob: event.BlobRef{Blob: "sha256:png", Bytes: 8}},
	{Type: event.ImagePart, URL: "https://example.org/a.png"},
	{Type: event.ImagePart, MediaType: "image/tiff", Data: []byte("II*")},
	{Type: event.DocumentPart, Name: "a.pdf", MediaType: "application/pdf", Data: []byte("%PDF-1")},
	{Type: event.DocumentPart, Name: "a.md", MediaType: "text/markdown", Data: []byte("# A")},
	{Type: event.DocumentPart, URL: "https://example.org/a.pdf"},
	{Type: event.AudioPart, MediaType: "audio/wav", Data: []byte("RIFF")},
}

func TestRenderings(t *testing.T) {
	for _, test := range []struct {
		name            string
		history         []event.Message
		chat, responses string // the elements of the lists
	}{
		{"nothing", nil, ``, ``},
		{
			"each message keeps its role",
			[]event.Message{by(system, text("Be brief.")), by(user, text("Hi")), by(developer, text("Be"), text("kind."))},
			`{"role":"system","content":"Be brief."},` + hi + `,{"role":"developer","content":"Be\nkind."}`,
			`{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]},` + hiItem +
				`,{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be"},{"type":"input_text","text":"kind."}]}`,
		},
		{
			"calls and results",
			[]event.Message{
				by(user, text("Hi")), by(assistant, text("a"), call("c"), text("b")), by(tool, event.ToolResult("c", "Bash", text("ok"), text(" \n"), text("2")), text("go")),
				by(assistant, call("d")), by(tool, event.ToolResult("d", "")),
			},
			hi + `,{"role":"assistant","content":"a\nb","tool_calls":[` + callC + `]},{"role":"tool","tool_call_id":"c","content":"ok\n2"},{"role":"user","content":"go"},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"Bash","arguments":` + arguments + `}}]},{"role":"tool","tool_call_id":"d","content":""}`,
			hiItem + `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` + callItemC +
				`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},` +
				`{"type":"function_call_output","call_id":"c","output":"ok\n2"},{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},` +
				`{"type":"function_call","call_id":"d","name":"Bash","arguments":` + arguments + `},{"type":"function_call_output","call_id":"d","output":""}`,
		},
		{
			"a call without a result, and a result without a call",
			[]event.Message{by(assistant, call("c")), by(tool, event.ToolResult("x", "", text("?"))), by(user, text("Hi"))},
			`{"role":"assistant","content":null,"tool_calls":[` + callC + `]},{"role":"tool","tool_call_id":"c","content":"` + noResult + `"},` + hi,
			callItemC + `,{"type":"function_call_output","call_id":"c","output":"` + noResult + `"},` + hiItem,
		},
		{
			"reasoning",
			[]event.Message{
				{Role: assistant, Provider: "openai", Parts: []event.Part{{Type: event.ReasoningPart, Text: "hm", Encrypted: "eA=="}, text("a"), {Type: event.ReasoningPart, Encrypted: "eQ=="}}},
				{Role: assistant, Provider: "anthropic", Parts: []event.Part{{Type: event.ReasoningPart, Encrypted: "eA=="}, event.Reasoning("x", "c2ln"), text("b")}},
			},
			`{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}`,
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"eA=="},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`,
		},
		{
			"messages without content",
			[]event.Message{by(user, text("")), by(assistant, event.Opaque("?", []byte(`1`)), text("\n")), by(user, text("Hi"))},
			hi, hiItem,
		},
		{
			"bodies",
			[]event.Message{by(user, bodies...)},
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + imageOfPNG + `"}},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},` +
				`{"type":"text","text":"[image, image/tiff, 3 bytes]"},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"}},` +
				`{"type":"text","text":"[document, text/markdown, a.md, 3 bytes]\n# A"},{"type":"text","text":"[document, https://example.org/a.pdf]"},` +
				`{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}`,
			`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"` + imageOfPNG + `"},{"type":"input_image","image_url":"https://example.org/a.png"},` +
				`{"type":"input_text","text":"[image, image/tiff, 3 bytes]"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"},` +
				`{"type":"input_text","text":"[document, text/markdown, a.md, 3 bytes]\n# A"},{"type":"input_file","file_url":"https://example.org/a.pdf"},` +
				`{"type":"input_text","text":"[audio, audio/wav, 4 bytes]"}]}`,
		},
		{
			"an image in a result",
			[]event.Message{by(assistant, call("c")), by(tool, event.ToolResult("c", "", text("see"), bodies[0])), by(user, text("Hi"))},
			`{"role":"assistant","content":null,"tool_calls":[` + callC + `]},{"role":"tool","tool_call_id":"c","content":"see\n[image, image/jpeg, 8 bytes]"},` +
				`{"role":"user","content":[{"type":"text","text":"[What the tools showed:]"},{"type":"image_url","image_url":{"url":"` + imageOfPNG + `"}}]},` + hi,
			callItemC + `,{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"` + imageOfPNG + `"}]},` + hiItem,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := openai.Options{Blob: func(event.BlobRef) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n"), nil }}
			chat, err := openai.Chat(history(test.history...), o)
			expect(t, `{"messages":[`+test.chat+`]}`, chat, err, modelapi.CheckChat)
			items, err := openai.Responses(history(test.history...), o)
			expect(t, `{"input":[`+test.responses+`]}`, items, err, modelapi.CheckResponses)
		})
	}
}

func TestNoHistoryAndNoOptions(t *testing.T) {
	chat, err := openai.Chat(nil)
	expect(t, `{"messages":[]}`, chat, err, modelapi.CheckChat)
	items, err := openai.Responses(nil)
	expect(t, `{"input":[]}`, items, err, modelapi.CheckResponses)
}

func expect(t *testing.T, want string, got jsontext.Value, err error, check func(jsontext.Value) error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if err := check(got); err != nil {
		t.Error(err)
	}
}

func TestMissingBody(t *testing.T) {
	errGone := errors.New("gone")
	h := history(by(assistant, call("c")), by(tool, event.ToolResult("c", "", bodies[0])))
	o := openai.Options{Blob: func(event.BlobRef) ([]byte, error) { return nil, errGone }}
	if _, err := openai.Chat(h, o); !errors.Is(err, errGone) {
		t.Errorf("chat: error is %v", err)
	}
	if _, err := openai.Responses(h, o); !errors.Is(err, errGone) {
		t.Errorf("responses: error is %v", err)
	}
}

func TestCheckRejects(t *testing.T) {
	const (
		toolCalls  = `{"role":"assistant","content":null,"tool_calls":[` + callC + `]}`
		toolResult = `{"role":"tool","tool_call_id":"c","content":""}`
	)
	of := func(messages string) string { return `{"messages":[` + messages + `]}` }
	if err := modelapi.CheckChat([]byte(of(hi + "," + toolCalls + "," + toolResult))); err != nil {
		t.Fatalf("a valid request: %v", err)
	}
	for name, raw := range map[string]string{
		"not an object":                   `7`,
		"an unknown member":               `{"messages":[],"model":"m"}`,
		"another role":                    of(`{"role":"critic","content":"Hi"}`),
		"an unknown member of a message":  of(`{"role":"user","content":"Hi","id":"x"}`),
		"an empty text":                   of(`{"role":"user","content":" "}`),
		"no parts":                        of(`{"role":"user","content":[]}`),
		"parts of the system":             of(`{"role":"system","content":[{"type":"text","text":"x"}]}`),
		"an unknown part":                 of(`{"role":"user","content":[{"type":"video"}]}`),
		"an image without an address":     of(`{"role":"user","content":[{"type":"image_url","image_url":{"url":""}}]}`),
		"an image as a string":            of(`{"role":"user","content":[{"type":"image_url","image_url":"https://example.org"}]}`),
		"an empty list of calls":          of(`{"role":"assistant","content":"Hi","tool_calls":[]}`),
		"an empty message":                of(`{"role":"assistant","content":null}`),
		"a call without a result":         of(toolCalls),
		"a result after another message":  of(toolCalls + "," + hi + "," + toolResult),
		"a result without a call":         of(toolResult),
		"two results":                     of(toolCalls + "," + toolResult + "," + toolResult),
		"a duplicate id":                  of(toolCalls + "," + toolResult + "," + toolCalls + "," + toolResult),
		"arguments are an object":         of(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":{}}}]},` + toolResult),
		"arguments do not hold an object": of(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"[]"}}]},` + toolResult),
		"an invalid name":                 of(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"a.b","arguments":"{}"}}]},` + toolResult),
		"a result is not a text":          of(toolCalls + `,{"role":"tool","tool_call_id":"c","content":[]}`),
		"a call of another type":          of(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","function":{"name":"n","arguments":"{}"}}]},` + toolResult),
		"a blank text":                    of(`{"role":"assistant","content":"\n","tool_calls":[` + callC + `]},` + toolResult),
	} {
		if err := modelapi.CheckChat([]byte(raw)); !errors.Is(err, modelapi.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckResponsesRejects(t *testing.T) {
	const (
		toolResult = `{"type":"function_call_output","call_id":"c","output":""}`
		reasoning  = `{"type":"reasoning","summary":[],"encrypted_content":"eA=="}`
	)
	of := func(items string) string { return `{"input":[` + items + `]}` }
	if err := modelapi.CheckResponses([]byte(of(hiItem + "," + reasoning + "," + callItemC + "," + toolResult))); err != nil {
		t.Fatalf("a valid request: %v", err)
	}
	for name, raw := range map[string]string{
		"not an object":                  `[]`,
		"an unknown item":                of(`{"type":"sound"}`),
		"an unknown member":              of(`{"type":"message","role":"user","id":"x","content":[{"type":"input_text","text":"Hi"}]}`),
		"output of the user":             of(`{"type":"message","role":"user","content":[{"type":"output_text","text":"Hi"}]}`),
		"an empty message":               of(`{"type":"message","role":"user","content":[]}`),
		"another role":                   of(`{"type":"message","role":"tool","content":[{"type":"input_text","text":"Hi"}]}`),
		"a call without a result":        of(callItemC),
		"a result after another message": of(callItemC + "," + hiItem + "," + toolResult),
		"a result without a call":        of(toolResult),
		"a duplicate id":                 of(callItemC + "," + toolResult + "," + callItemC + "," + toolResult),
		"reasoning at the end":           of(reasoning),
		"reasoning before the user":      of(reasoning + "," + hiItem),
		"reasoning before a result":      of(callItemC + "," + reasoning + "," + toolResult),
		"empty reasoning":                of(`{"type":"reasoning","summary":[],"encrypted_content":""},` + callItemC + "," + toolResult),
		"a document without a name":      of(`{"type":"message","role":"user","content":[{"type":"input_file","file_data":"x"}]}`),
	} {
		if err := modelapi.CheckResponses([]byte(raw)); !errors.Is(err, modelapi.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
