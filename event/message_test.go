package event

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestMessageConstructors(t *testing.T) {
	for want, e := range map[string]Event{
		`{"role":"system","parts":[{"type":"text","text":"s"}]}`:    textMessage(System, "s"),
		`{"role":"user","parts":[{"type":"text"}]}`:                 UserMessage(""),
		`{"role":"assistant","parts":[{"type":"text","text":"a"}]}`: AssistantMessage("a"),
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"1","name":"n","content":[{"type":"text","text":"r"}],"is_error":true}]}`: ToolOutput(
			"1", "n", []byte("r"), true),
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"1","name":"n"},{"type":"tool_result","call_id":"2","name":"n"}]}`: ToolMessage(
			ToolResult("1", "n"), ToolResult("2", "n")),
	} {
		var zero Event
		if e.Type != MessageAdded || e.ID == zero.ID {
			t.Errorf("%s: type %q, id %v", want, e.Type, e.ID)
		}
		if string(e.Data) != want {
			t.Errorf("got %s, want %s", e.Data, want)
		}
	}
}

// Any bytes of a tool's output are stored; a repair is marked.
func TestToolOutputIsRepaired(t *testing.T) {
	for output, want := range map[string]string{
		"a\xffb": "a\ufffdb", "\xc3": "\ufffd", "ok": "ok", "a\ufffdb": "a\ufffdb", "": "", "\xed\xa0\x80": "\ufffd",
	} {
		e := ToolOutput("1", "n", []byte(output), false)
		m, _, err := Decode[Message](&e)
		if err != nil || e.Normalize() != nil || m.Parts[0].Content[0].Text != want {
			t.Errorf("%q: %s, %v, %v", output, e.Data, err, e.Normalize())
		}
		mark, marked := e.MetadataValue("repaired")
		if repaired := output != want; marked != repaired || repaired && string(mark) != `["invalid_unicode"]` {
			t.Errorf("%q: the mark is %s", output, mark)
		}
	}
}

func TestMessageParts(t *testing.T) {
	m := Message{Role: Assistant, Parts: []Part{
		Reasoning("hm", "sig"), Text("a"),
		ToolCall("1", "read", nil), ToolCall("2", "write", jsontext.Value(`{"n":1.0}`)),
		{Type: ServerToolCallPart, CallID: "3", Name: "search"}, Text("b"),
		ToolResult("2", "write", Text("no text of the message")),
	}}
	if got := m.Text(); got != "ab" {
		t.Errorf("text is %q", got)
	}
	if diff := cmp.Diff([]Part{m.Parts[2], m.Parts[3]}, m.ToolCalls()); diff != "" {
		t.Errorf("calls differ:\n%s", diff)
	}
	if diff := cmp.Diff([]Part{m.Parts[6]}, m.ToolResults()); diff != "" {
		t.Errorf("results differ:\n%s", diff)
	}
	want := Outline{Role: Assistant, Calls: []OutlineCall{{"1", "read"}, {"2", "write"}}, Results: []string{"2"}, Parts: 7}
	if diff := cmp.Diff(want, m.Outline()); diff != "" {
		t.Errorf("outline differs:\n%s", diff)
	}
	e := New(m)
	if got, ok, err := OutlineOf(&e); err != nil || !ok || !cmp.Equal(got, want) {
		t.Errorf("outline of the event is %+v, %v, %v", got, ok, err)
	}
	if got := string(m.Parts[2].Arguments); got != `{}` {
		t.Errorf("empty arguments are %s", got)
	}
}

func TestMessageKeepsArgumentsVerbatim(t *testing.T) {
	const arguments = `{"b":"\u0061\/","a":[9007199254740993,1.0,1E400,-0]}`
	e := New(Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(arguments))}})
	for range 2 {
		m, ok, err := Decode[Message](&e)
		if err != nil || !ok {
			t.Fatalf("message: %v %v", ok, err)
		}
		if got := string(m.ToolCalls()[0].Arguments); got != arguments {
			t.Fatalf("arguments are %s, want %s", got, arguments)
		}
		e = New(m)
	}
}

func TestMessageRefusesWhatIsNoJSON(t *testing.T) {
	for name, p := range map[string]Payload{
		"truncated arguments": Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(`{"a":`))}},
		"two values":          Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(`1 2`))}},
		"duplicate name":      Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(`{"a":1,"a":2}`))}},
		"invalid UTF-8":       Message{Role: User, Parts: []Part{Text("\xff")}},
		"invalid UTF-8 deep":  ToolCompletion{CallID: "1", Name: "n", Content: []Part{Text("a\xc3")}},
	} {
		e := New(p)
		if err := e.Normalize(); !errors.Is(err, ErrInvalidPayload) {
			t.Errorf("%s: %s, %v", name, e.Data, err)
		}
	}
}

func TestMessageReadErrors(t *testing.T) {
	later := Event{Type: "message_added/2", Data: jsontext.Value(`{}`)}
	var version *VersionError
	if _, ok, err := Decode[Message](&later); !ok || !errors.As(err, &version) || version.Got != 2 || version.Max != 1 {
		t.Errorf("later version: %v, %v", ok, err)
	}
	redacted := Event{Type: MessageAdded}
	redacted.own().redacted = true
	if _, ok, err := Decode[Message](&redacted); !ok || !errors.Is(err, ErrRedacted) {
		t.Errorf("redacted: %v, %v", ok, err)
	}
	misshapen := Event{Type: MessageAdded, Data: jsontext.Value(`{"role":"user","parts":"hi"}`)}
	if _, ok, err := Decode[Message](&misshapen); !ok || !errors.Is(err, ErrInvalidPayload) {
		t.Errorf("misshapen: %v, %v", ok, err)
	}
	other := Event{Type: TurnStarted, Data: jsontext.Value(`not JSON`)}
	if _, ok, err := Decode[Message](&other); ok || err != nil {
		t.Errorf("another type: %v, %v", ok, err)
	}
}

func BenchmarkNewMessage(b *testing.B) {
	m := benchMessage()
	b.ReportAllocs()
	for b.Loop() {
		if e := New(m); e.Data == nil {
			b.Fatal(e)
		}
	}
}

func BenchmarkReadMessage(b *testing.B) {
	e := New(benchMessage())
	b.ReportAllocs()
	b.SetBytes(int64(len(e.Data)))
	for b.Loop() {
		if _, _, err := Decode[Message](&e); err != nil {
			b.Fatal(err)
		}
	}
}

func benchMessage() Message {
	return Message{
		Role: Assistant, Provider: "p", Model: "m", Usage: Usage{InputTokens: 1200, OutputTokens: 80},
		Parts: []Part{Text("Let me look at the file before I change it."), ToolCall("call_1", "read", jsontext.Value(`{"path":"main.go","limit":200}`))},
	}
}
