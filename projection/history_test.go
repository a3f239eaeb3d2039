package projection_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// story appends payloads to a session and renders its history.
type story struct {
	testing.TB
	log     *eventlog.Log
	session string
	seq     int64
}

func newStory(t testing.TB, log *eventlog.Log, session string) *story {
	return &story{TB: t, log: log, session: session}
}

// add appends payloads, unchecked as an import would, and gives the seq of the
// last.
func (s *story) add(payloads ...event.Payload) int64 {
	s.Helper()
	for _, p := range payloads {
		e := event.New(p)
		head, err := s.log.Append(context.Background(), s.session, eventlog.Any().Lenient(), e)
		if err != nil {
			s.Fatal(err)
		}
		s.seq = head.Seq
	}
	return s.seq
}

func (s *story) history(o ...projection.Options) *projection.HistoryState {
	s.Helper()
	v, err := projection.Load(context.Background(), s.log, s.session, projection.History(), o...)
	if err != nil {
		s.Fatal(err)
	}
	return &v.State
}

func (s *story) render(o ...projection.RenderOptions) []projection.Entry {
	s.Helper()
	entries, err := s.history().Messages(o...)
	if err != nil {
		s.Fatal(err)
	}
	return entries
}

// sees compares the history with lines as brief writes them.
func (s *story) sees(want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, brief(s.render())); diff != "" {
		s.Fatalf("history (-want +got):\n%s", diff)
	}
}

// brief writes an entry as a line: where it comes from, the role, its parts.
func brief(entries []projection.Entry) (lines []string) {
	for _, e := range entries {
		line := fmt.Sprintf("%d %s", e.Seq, e.Message.Role)
		if e.Context != "" {
			line += " {" + e.Context + "}"
		}
		for _, p := range e.Message.Parts {
			line += " " + briefPart(p)
		}
		if e.Made != "" {
			line += " <" + e.Made + ">"
		}
		lines = append(lines, line)
	}
	return lines
}

func briefPart(p event.Part) string {
	switch p.Type {
	case event.TextPart:
		return p.Text
	case event.ToolCallPart:
		return "call:" + p.CallID
	case event.ToolResultPart:
		text := "result:" + p.CallID
		for _, c := range p.Content {
			text += "=" + briefPart(c)
		}
		return text
	default:
		return string(p.Type) + ":" + p.Text
	}
}

func asks(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func says(parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Parts: parts}
}

func calls(id string) event.Part { return event.ToolCall(id, "tool", nil) }

func gives(id, text string) event.Message {
	return event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(id, "tool", event.Text(text))}}
}

func prefix(text string) event.ContextEntry {
	return event.ContextEntry{Kind: "rules", Placement: event.AsPrefix, Parts: []event.Part{event.Text(text)}}
}

func inPlace(text string) event.ContextEntry {
	return event.ContextEntry{Placement: event.InHistory, Parts: []event.Part{event.Text(text)}}
}

func piece(group string, parts ...event.Part) event.Message {
	m := says(parts...)
	m.Group = group
	return m
}

var stepped = event.StepStart{Step: 1}

func messageJSON(t interface {
	Helper()
	Fatal(...any)
}, entries []projection.Entry) (lines []string) {
	t.Helper()
	for _, e := range entries {
		b, err := json.Marshal(e.Message, jsontext.PreserveRawStrings(true))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return lines
}

func TestResultsFollowTheirCalls(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.add(asks("hello"), piece("g", event.Text("first"), calls("a")), asks("wait"), gives("b", "nobody asked"),
			piece("g", calls("b")), gives("b", "B"), gives("a", "A"), inPlace("a note"), prefix("be kind"))
		s.sees("9 user {rules} be kind", "1 user hello", "2 assistant first call:a call:b", "7 tool result:a=A",
			"6 tool result:b=B", "3 user wait", "8 user {context} a note")
	})
}

func TestARenderedRequestStays(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		s := newStory(t, log, "s")
		s.add(prefix("one"), asks("hello"), piece("g", calls("a")), stepped, piece("g", event.Text("more")), prefix("two"), gives("a", "late"))
		s.sees("1 user {rules} one", "2 user hello", "3 assistant call:a",
			"0 tool result:a=[interrupted: the call gave no result] <interrupted>",
			"5 assistant more", "6 user {rules} two", "7 user [late result of call a] late <late>")
		s.add(event.Compaction{Covers: event.Stretch{From: 2, To: 2}, Summary: "they greeted"})
		s.sees("1 user {rules} one", "6 user {rules} two", "0 user they greeted", "3 assistant call:a more", "7 tool result:a=late")
	})
}

// plainLog is a log for tests in which the store does not matter.
func plainLog(t testing.TB) *eventlog.Log {
	log := eventlog.Open(garden.Plain(t.TempDir()))
	t.Cleanup(func() { log.Close() })
	return log
}
