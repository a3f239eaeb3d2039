package eventlog

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestMessageConstructors(t *testing.T) {
	for want, construct := range map[string]func() (Event, error){
		`{"role":"system","parts":[{"type":"text","text":"s"}]}`:    func() (Event, error) { return NewSystemMessage("s") },
		`{"role":"user","parts":[{"type":"text"}]}`:                 func() (Event, error) { return NewUserMessage("") },
		`{"role":"assistant","parts":[{"type":"text","text":"a"}]}`: func() (Event, error) { return NewAssistantMessage("a") },
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"1","name":"n","content":[{"type":"text","text":"r"}],"is_error":true}]}`: func() (Event, error) {
			return NewToolResult("1", "n", "r", true)
		},
	} {
		e, err := construct()
		if err != nil {
			t.Errorf("%s: %v", want, err)
		}
		var zero Event
		if e.Type != MessageAdded || e.ID == zero.ID {
			t.Errorf("%s: type %q, id %v", want, e.Type, e.ID)
		}
		if string(e.Data) != want {
			t.Errorf("got %s, want %s", e.Data, want)
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
	if diff := cmp.Diff([]string{"1", "2"}, m.callIDs()); diff != "" {
		t.Errorf("call ids differ:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2"}, m.resultIDs()); diff != "" {
		t.Errorf("result ids differ:\n%s", diff)
	}
	if got := string(m.Parts[2].Arguments); got != `{}` {
		t.Errorf("empty arguments are %s", got)
	}
}

func TestMessageKeepsArgumentsVerbatim(t *testing.T) {
	const arguments = `{"b":"\u0061\/","a":[9007199254740993,1.0,1E400,-0]}`
	e, err := NewMessage(Message{Role: Assistant, Parts: []Part{ToolCall("1", "n", jsontext.Value(arguments))}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, ok, err := e.Message()
		if err != nil || !ok {
			t.Fatalf("message: %v %v", ok, err)
		}
		if got := string(m.ToolCalls()[0].Arguments); got != arguments {
			t.Fatalf("arguments are %s, want %s", got, arguments)
		}
		if e, err = NewMessage(m); err != nil {
			t.Fatal(err)
		}
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
		if e, err := NewEvent(p); !errors.Is(err, ErrInvalidPayload) {
			t.Errorf("%s: %s, %v", name, e.Data, err)
		}
	}
}

func TestMessageReadErrors(t *testing.T) {
	later := Event{Type: "message_added/2", Data: jsontext.Value(`{}`)}
	var version *VersionError
	if _, ok, err := later.Message(); !ok || !errors.As(err, &version) || version.Got != 2 || version.Max != 1 {
		t.Errorf("later version: %v, %v", ok, err)
	}
	redacted := Event{Type: MessageAdded}
	redacted.rarely().redacted = true
	if _, ok, err := redacted.Message(); !ok || !errors.Is(err, ErrRedacted) {
		t.Errorf("redacted: %v, %v", ok, err)
	}
	misshapen := Event{Type: MessageAdded, Data: jsontext.Value(`{"role":"user","parts":"hi"}`)}
	if _, ok, err := misshapen.Message(); !ok || !errors.Is(err, ErrInvalidPayload) {
		t.Errorf("misshapen: %v, %v", ok, err)
	}
	other := Event{Type: TurnStarted, Data: jsontext.Value(`not JSON`)}
	if _, ok, err := other.Message(); ok || err != nil {
		t.Errorf("another type: %v, %v", ok, err)
	}
}

func BenchmarkNewMessage(b *testing.B) {
	m := benchMessage()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewMessage(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadMessage(b *testing.B) {
	e, err := NewMessage(benchMessage())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(e.Data)))
	for b.Loop() {
		if _, _, err := e.Message(); err != nil {
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
