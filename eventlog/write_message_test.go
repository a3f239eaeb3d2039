package eventlog

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// written are messages, and whether the writer must be sure of them.
var written = []struct {
	message Message
	sure    bool
}{
	{Message{}, true},
	{Message{Role: User, Parts: []Part{}}, true},
	{Message{Role: Tool, Parts: []Part{{Type: ToolResultPart, CallID: "c", Content: []Part{}, IsError: true, Interrupted: true}}}, true},
	{Message{
		Role: Assistant, Provider: "p", Model: "m", ResponseID: "r", StopReason: "s", Group: "g",
		Usage: Usage{InputTokens: 1, OutputTokens: -2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5, Extra: jsontext.Value(`{"a":1e3}`)},
		Parts: []Part{
			{Type: ReasoningPart, ID: "i", Text: "a\n\"b\"\\\r\té🙂\u2028<&>\x7f", Signature: "s", Encrypted: "e", Redacted: true},
			{Type: ImagePart, MediaType: "m", Blob: BlobRef{DigestOf(nil), 7}, URL: "u"},
			{Type: ToolCallPart, CallID: "c", Name: "n", Arguments: jsontext.Value(`{"x":"\u0041"}`)},
			{Type: ToolResultPart, Content: []Part{Text("x"), Opaque("k", jsontext.Value(`null`))}},
			{Type: "new", Text: "of a type that is not known"},
		},
		Extra: jsontext.Value(`{"b":[1,2],"a":null}`),
	}, true},
	{Message{Role: User, Usage: Usage{Extra: jsontext.Value(`{}`)}}, true},
	{Message{Role: "\x01"}, false},
	{Message{Role: User, Parts: []Part{Text("\xff")}}, false},
	{Message{Role: User, Parts: []Part{{Type: "new", Raw: jsontext.Value(`{"type":"new"}`)}}}, false},
	{Message{Role: User, Parts: []Part{{Type: ImagePart, Data: []byte{1}}}}, false},
	{Message{Role: User, Extra: jsontext.Value(``)}, false},
	{Message{Role: User, Extra: jsontext.Value(`{"a": 1}`)}, false},
	{Message{Role: User, Extra: jsontext.Value(`{"a":1,"a":2}`)}, false},
	{Message{Role: User, Extra: jsontext.Value(`{`)}, false},
}

func TestMessagesAreWrittenAsTheEncoderDoes(t *testing.T) {
	for _, test := range written {
		if _, sure := writeMessage(&test.message); sure != test.sure {
			t.Errorf("%+v: sure %v", test.message, sure)
		}
		compareWritten(t, &test.message)
	}
	deep := Message{Role: Tool}
	for range 200 {
		deep.Parts = []Part{{Type: ToolResultPart, CallID: "c", Content: deep.Parts}}
	}
	if _, sure := writeMessage(&deep); sure {
		t.Error("sure of parts at any depth")
	}
}

// Where the writer gives up, appends are slow: it must be sure of what the goldens
// hold.
func TestGoldenMessagesAreWritten(t *testing.T) {
	sure := 0
	for e := range goldenEvents(t) {
		if m, ok, err := e.Message(); ok && err == nil {
			compareWritten(t, &m)
			if _, ok := writeMessage(&m); ok {
				sure++
			}
		}
	}
	if sure < 10 {
		t.Errorf("sure of %d messages only", sure)
	}
}

// FuzzWriteMessage: what the writer is sure of is what the encoder writes.
func FuzzWriteMessage(f *testing.F) {
	for _, test := range messages {
		f.Add([]byte(test.text))
	}
	for _, test := range written {
		if text, err := json.Marshal(test.message); err == nil {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Message
		if json.Unmarshal(text, &m, jsontext.AllowInvalidUTF8(true)) == nil {
			compareWritten(t, &m)
		}
	})
}

func compareWritten(t *testing.T, m *Message) {
	t.Helper()
	got, sure := writeMessage(m)
	if !sure {
		return
	}
	want, err := json.Marshal(m, jsontext.PreserveRawStrings(true))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("wrote\n%s\nthe encoder\n%s\n%v", got, want, err)
	}
}
