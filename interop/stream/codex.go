package stream

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// codexItem is an item of Codex.
type codexItem struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Status    string         `json:"status"`
	Command   string         `json:"command"`
	Output    string         `json:"aggregated_output"`
	ExitCode  int            `json:"exit_code"`
	Changes   jsontext.Value `json:"changes"`
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments"`
	Result    struct {
		Content jsontext.Value `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// addCodex adds the items of a line of Codex.
func (s *session) addCodex(rec *records.Record, o *parts.Members, kind string) {
	switch kind {
	case "item.started", "item.updated":
		s.Held++
	case "item.completed":
		var item codexItem
		v := o.Peek("item")
		if json.Unmarshal(v, &item) != nil || !s.addItem(rec, &item, v) {
			s.raw(rec, kind)
		}
	case "turn.completed":
		u, ok := parts.Usage(renamed(o.Peek("usage")))
		if !ok {
			s.raw(rec, kind)
			return
		}
		u.Extra = nil
		step := event.StepCompletion{Provider: "openai", Usage: u, Extra: rec.Value}
		s.Items = append(s.Items, document.Item{Rec: *rec, Payload: step, Kind: kind})
	default:
		s.raw(rec, kind)
	}
}

// renamed is the usage of a turn with the names of Responses.
func renamed(v jsontext.Value) jsontext.Value {
	o, err := parts.Open(v)
	if err != nil {
		return v
	}
	if cached := o.Take("cached_input_tokens"); cached != nil {
		o.Put("input_tokens_details", rawjson.Object([]rawjson.Member{{Name: "cached_tokens", Value: cached}}))
	}
	return o.Rest()
}

// addItem adds the messages of an item. ok is false if the item is of another type.
func (s *session) addItem(rec *records.Record, item *codexItem, raw jsontext.Value) (ok bool) {
	answer := event.Message{Role: event.Assistant, Provider: "openai", Extra: restOf(raw)}
	var result event.Part
	switch item.Type {
	case "agent_message":
		answer.Parts = []event.Part{event.Text(item.Text)}
	case "reasoning":
		answer.Parts = []event.Part{event.Reasoning(item.Text, "")}
	case "command_execution":
		result = s.call(&answer, "shell", rawjson.Object([]rawjson.Member{{Name: "command", Value: text(item.Command)}}))
		result.Content = contentOf(item.Output)
	case "file_change":
		result = s.call(&answer, "apply_patch", item.changes())
		result.Content = contentOf(item.Status)
	case "mcp_tool_call":
		result = s.call(&answer, item.Server+"."+item.Tool, item.Arguments)
		if item.Result.Content != nil {
			result.Content, _ = s.reader.Content(item.Result.Content) // a Reader without Put returns no error
		}
		result.Content = append(result.Content, contentOf(item.Error.Message)...)
	default:
		return false
	}
	s.message(rec, answer, 0, result.Type != "")
	if result.Type != "" {
		result.IsError = item.Status == "failed" || item.Status == "declined" || item.ExitCode != 0
		s.message(rec, event.Message{Role: event.Tool, Parts: []event.Part{result}}, 1, true)
	}
	return true
}

// changes are the arguments of a change of files; nil if the item has none.
func (item *codexItem) changes() jsontext.Value {
	if item.Changes == nil {
		return nil
	}
	return rawjson.Object([]rawjson.Member{{Name: "changes", Value: item.Changes}})
}

// restOf are the members of an item that its messages lack.
func restOf(item jsontext.Value) jsontext.Value {
	o, err := parts.Open(item)
	if err != nil {
		return nil
	}
	for _, name := range []string{"text", "command", "aggregated_output", "changes", "arguments", "result", "error"} {
		if v := o.Take(name); name == "result" {
			if structured, err := parts.Open(v); err == nil && structured.Peek("structured_content").Kind() == '{' {
				o.Put("structured_content", structured.Peek("structured_content"))
			}
		}
	}
	return o.Rest()
}

// call adds a call to an answer, and returns its result without content. The ids of items
// repeat when a session is resumed, so calls are counted.
func (s *session) call(m *event.Message, name string, arguments jsontext.Value) event.Part {
	s.calls++
	id := fmt.Sprintf("call_%d", s.calls)
	m.Parts = []event.Part{event.ToolCall(id, name, arguments)}
	return event.ToolResult(id, name)
}

func contentOf(text string) []event.Part {
	if text == "" {
		return nil
	}
	return []event.Part{event.Text(text)}
}

func text(s string) jsontext.Value {
	b, _ := json.Marshal(s) // a decoded text is valid
	return b
}
