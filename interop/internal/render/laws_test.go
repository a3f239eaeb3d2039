package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/openai"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// shape is a renderer, with its check.
type shape struct {
	name   string
	render func([]projection.Entry) (jsontext.Value, error)
	check  func(jsontext.Value) error
	// end is the text after the messages; openEnd is the text after a last message that
	// later events extend.
	end string
}

func body(r event.BlobRef) ([]byte, error) { return []byte("%PDF-1.4 " + string(r.Blob)), nil }

var shapes = []shape{
	{"anthropic", func(h []projection.Entry) (jsontext.Value, error) {
		return anthropic.Messages(h, anthropic.Options{Blob: body})
	}, modelapi.CheckMessages, `]}]}`},
	{"openai chat", func(h []projection.Entry) (jsontext.Value, error) {
		return openai.Chat(h, openai.Options{Blob: body})
	}, modelapi.CheckChat, `]}`},
	{"openai responses", func(h []projection.Entry) (jsontext.Value, error) {
		return openai.Responses(h, openai.Options{Blob: body})
	}, modelapi.CheckResponses, `]}`},
}

var (
	texts = []string{"", " \n", "Hi", "Bye \ufffd\u0000<é>", "\t"}
	ids   = []string{"c1", "c2", "call/3 ü", "srvtoolu_1", "srvtoolu_2", "x-" + string(bytes.Repeat([]byte("long"), 40))}
	names = []string{"", "Bash", "web_search", "mcp server:tool", "code_execution"}
	types = []string{"", "image/png", "image/tiff", "application/pdf", "TEXT/plain; charset=utf-8", "audio/wav", "?"}
	raws  = []string{`{}`, `[]`, `null`, `"x"`, `{"a":1.50,"b":[9007199254740993]}`, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result"}]}`}
	parts = []event.PartType{
		event.TextPart, event.TextPart, event.ReasoningPart, event.ImagePart, event.AudioPart, event.DocumentPart,
		event.ToolCallPart, event.ToolCallPart, event.ToolResultPart, event.ToolResultPart,
		event.ServerToolCallPart, event.ServerToolResultPart, event.OpaquePart, "sparkle",
	}
)

// anyPart is any part, well-formed or not.
func anyPart(t *rapid.T, depth int) event.Part {
	p := event.Part{
		Type: rapid.SampledFrom(parts).Draw(t, "part"), Text: rapid.SampledFrom(texts).Draw(t, "text"),
		CallID: rapid.SampledFrom(ids).Draw(t, "call"), Name: rapid.SampledFrom(names).Draw(t, "name"),
		ID: rapid.SampledFrom(ids).Draw(t, "id"),
	}
	switch p.Type {
	case event.ReasoningPart:
		p.Signature = rapid.SampledFrom([]string{"", "c2ln"}).Draw(t, "signature")
		p.Encrypted = rapid.SampledFrom([]string{"", "eHl6"}).Draw(t, "encrypted")
		p.Redacted = rapid.Bool().Draw(t, "redacted")
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		p.MediaType = rapid.SampledFrom(types).Draw(t, "type")
		switch rapid.IntRange(0, 3).Draw(t, "body") {
		case 0:
			p.Blob = event.BlobRef{Blob: event.DigestOf([]byte("x")), Bytes: 1}
		case 1:
			p.Data = []byte(rapid.SampledFrom([]string{"", "\x89PNG\r\n\x1a\nX", "text", "\xff"}).Draw(t, "data"))
		case 2:
			p.URL = rapid.SampledFrom([]string{"https://example.org/a", "file:///etc", "data:image/gif;base64,R0lGODlhAQ==", "data:,x", "data:;base64,%%"}).Draw(t, "url")
		}
	case event.ToolCallPart, event.ServerToolCallPart:
		if rapid.Bool().Draw(t, "arguments?") {
			p.Arguments = jsontext.Value(rapid.SampledFrom(raws).Draw(t, "arguments"))
		}
	case event.ToolResultPart, event.ServerToolResultPart:
		p.IsError = rapid.Bool().Draw(t, "is_error")
		for range rapid.IntRange(0, 2-depth).Draw(t, "content") {
			p.Content = append(p.Content, anyPart(t, depth+1))
		}
	case event.OpaquePart:
		p.Kind, p.Value = "k", jsontext.Value(rapid.SampledFrom(raws).Draw(t, "value"))
	}
	return p
}

var roles = []event.Role{event.System, event.Developer, event.User, event.User, event.Assistant, event.Assistant, event.Tool, event.Tool}

// anyMessage is any message of any role.
func anyMessage(t *rapid.T) event.Message {
	m := event.Message{
		Role:     rapid.SampledFrom(roles).Draw(t, "role"),
		Provider: rapid.SampledFrom([]string{"", "anthropic", "openai"}).Draw(t, "provider"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		m.Parts = append(m.Parts, anyPart(t, 0))
	}
	return m
}

// Law: any list of messages renders to a valid request, and to the same request
// each time.
func TestAnyMessagesGiveAValidRequest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var history []projection.Entry
		for range rapid.IntRange(0, 12).Draw(r, "messages") {
			history = append(history, projection.Entry{Message: anyMessage(r)})
		}
		for _, s := range shapes {
			raw := rendered(r, s, history)
			if err := s.check(raw); err != nil {
				r.Fatalf("%s: %v in\n%s", s.name, err, raw)
			}
			if again := rendered(r, s, history); !bytes.Equal(raw, again) {
				r.Fatalf("%s: rendered twice:\n%s\n%s", s.name, raw, again)
			}
		}
	})
}

// Law: an effective history renders to a valid request. If each call has its result,
// the request is a prefix of the request of a longer history.
func TestALongerHistoryBeginsLikeTheShorter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventlog.Open(memory.New())
		defer log.Close()
		if _, err := log.PutBlob(t.Context(), strings.NewReader("x")); err != nil {
			r.Fatal(err)
		}
		before := map[string]jsontext.Value{}
		for range rapid.IntRange(1, 8).Draw(r, "exchanges") {
			say(t, r, log)
			history := loaded(t, log)
			for _, s := range shapes {
				raw := rendered(r, s, history)
				if err := s.check(raw); err != nil {
					r.Fatalf("%s: %v in\n%s", s.name, err, raw)
				}
				if short := messagesOf(before[s.name], s.end); !bytes.HasPrefix(messagesOf(raw, ""), short) {
					r.Fatalf("%s: begins otherwise:\n%s\n%s", s.name, short, raw)
				}
				before[s.name] = raw
			}
		}
	})
}

// messagesOf is the text of a request from the messages on, without the end.
func messagesOf(raw jsontext.Value, end string) []byte {
	for _, name := range []string{`"messages":[`, `"input":[`} {
		if i := bytes.Index(raw, []byte(name)); i >= 0 {
			rest := raw[i+len(name):]
			if len(rest) <= len(`]}`) {
				return nil
			}
			return bytes.TrimSuffix(rest, []byte(end))
		}
	}
	return nil
}

func rendered(r *rapid.T, s shape, history []projection.Entry) jsontext.Value {
	raw, err := s.render(history)
	if err != nil {
		r.Fatalf("%s: %v", s.name, err)
	}
	return raw
}

// say appends a message and the results of its calls, in any order.
func say(t *testing.T, r *rapid.T, log *eventlog.Log) {
	m := anyMessage(r)
	var kept []event.Part
	calls := map[string]bool{}
	for _, p := range m.Parts {
		known := p.Type != "sparkle" && p.Type != event.ToolResultPart && (p.Type != event.ToolCallPart || m.Role == event.Assistant && !calls[p.CallID])
		if known && p.Type == event.ToolCallPart {
			calls[p.CallID] = true
		}
		if known {
			kept = append(kept, p)
		}
	}
	if m.Role == event.Tool {
		m.Role = event.User
	}
	m.Parts = kept
	write(t, r, log, m)
	for _, id := range rapid.Permutation(keysOf(calls)).Draw(r, "order") {
		write(t, r, log, event.Message{Role: event.Tool, Parts: []event.Part{
			event.ToolResult(id, "", event.Text(rapid.SampledFrom(texts).Draw(r, "result"))),
		}})
	}
}

func keysOf(set map[string]bool) (all []string) {
	for _, id := range ids {
		if set[id] {
			all = append(all, id)
		}
	}
	return all
}

// write appends a message leniently, and ignores an invalid one.
func write(t *testing.T, r *rapid.T, log *eventlog.Log, m event.Message) {
	e := event.New(m)
	head, err := log.Head(t.Context(), "s")
	if err != nil {
		head = event.Head{}
	}
	if _, err := log.AppendEach(t.Context(), "s", eventlog.At(head).Lenient(), []event.Event{e}); err != nil && !errors.Is(err, event.ErrInvalidPayload) {
		r.Fatalf("append %+v: %v", m, err)
	}
}

func loaded(t *testing.T, log *eventlog.Log) []projection.Entry {
	h, err := projection.Load(t.Context(), log, "s", projection.History())
	if err != nil {
		if _, missing := log.Head(t.Context(), "s"); missing != nil {
			return nil
		}
		t.Fatal(err)
	}
	entries, err := h.State.Messages()
	if err != nil {
		t.Fatal(fmt.Errorf("render: %w", err))
	}
	return entries
}
