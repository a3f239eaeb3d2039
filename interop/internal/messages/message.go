// Package messages parses lists of messages in the shapes of OpenAI's Chat Completions and
// Responses and of Anthropic's Messages. Importers of files with such lists use it.
package messages

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// LegacyTool is the role of a result in the times before call ids.
const LegacyTool = "function"

// Reader parses the elements of a list as messages, in order. One goroutine uses it.
type Reader struct {
	// At, Kind and HasRole describe the newest element: its time, zero if it has none;
	// its type, empty if it has none; and whether it has a role.
	At      time.Time
	Kind    string
	HasRole bool

	parts  parts.Reader // with the Names of all calls so far
	shape  Shape
	model  string
	number int // of the elements so far
	// unnamed is the id of the newest call without one.
	unnamed string
}

// NewReader returns a reader for a list of a shape. Answers without a model get the given
// one.
func NewReader(s Shape, model string) *Reader {
	return &Reader{parts: parts.Reader{Names: map[string]string{}}, shape: s, model: model}
}

// Message parses the next element; ok is false if it is no message. Bodies of images stay
// in the Data of their parts.
func (r *Reader) Message(v jsontext.Value) (m event.Message, ok bool, err error) {
	r.number++
	r.At, r.Kind, r.HasRole = time.Time{}, "", false
	o, err := parts.Open(v)
	if err != nil {
		return m, false, nil
	}
	r.At, r.Kind, r.HasRole = TimeOf(&o), o.PeekText("type"), o.Has("role")
	if !r.HasRole && isItemType(r.Kind) {
		m, ok, err = r.item(&o, r.Kind, v)
	} else {
		m, ok, err = r.withRole(&o)
	}
	if !ok || err != nil || o.Failed {
		return m, false, err
	}
	m.Extra = o.Rest()
	if m.Role == event.Assistant {
		r.fillIn(&m)
	}
	for _, call := range m.ToolCalls() {
		r.parts.Names[call.CallID] = call.Name
	}
	return m, true, nil
}

// fillIn sets the provider and the model of an answer.
func (r *Reader) fillIn(m *event.Message) {
	m.Provider = r.shape.provider()
	if m.Model == "" {
		m.Model = r.model
	}
}

// withRole parses a message with a role.
func (r *Reader) withRole(o *parts.Members) (m event.Message, ok bool, err error) {
	role := o.Text("role")
	if !IsRole(role) {
		return m, false, nil
	}
	m.Role = event.Role(role)
	if t := o.PeekText("type"); t == "message" {
		o.Take("type")
	}
	if role == "tool" || role == LegacyTool {
		m.Role = event.Tool
		return m, true, r.answer(&m, o)
	}
	hasContent := o.Has("content")
	content, err := r.parts.ChatContent(o)
	m.Parts = append(m.Parts, content...)
	if len(m.ToolResults()) > 0 && m.Role == event.User {
		m.Role = event.Tool
	}
	if m.Role == event.Assistant {
		r.reply(&m, o)
	}
	if rest := o.Rest(); len(m.Parts) == 0 && !hasContent && rest != nil {
		m.Parts, *o = []event.Part{event.Opaque("message", rest)}, parts.Members{}
	}
	return m, true, err
}

// reply parses the members that only the assistant's messages have.
func (r *Reader) reply(m *event.Message, o *parts.Members) {
	m.Parts = append(m.Parts, parts.ChatReply(o, func(n int) string {
		r.unnamed = r.madeID(n)
		return r.unnamed
	})...)
	v := o.Peek("function_call")
	if f, err := parts.Open(v); err == nil {
		o.Take("function_call")
		r.unnamed = r.madeID(len(m.ToolCalls()))
		p := parts.ChatFunction(&f, r.unnamed)
		if f.Failed {
			p = event.Opaque("function_call", v)
		}
		m.Parts = append(m.Parts, p)
	}
	m.ResponseID, m.Model = o.Maybe("id"), o.Maybe("model")
	for _, name := range []string{"stop_reason", "finish_reason"} {
		if reason := o.Maybe(name); reason != "" {
			m.StopReason = reason
		}
	}
	if u, ok := parts.Usage(o.Peek("usage")); ok {
		o.Take("usage")
		m.Usage = u
	}
}

// madeID makes an id for the n-th call of the element.
func (r *Reader) madeID(n int) string { return fmt.Sprintf("call_%d_%d", r.number, n) }

// answer parses a message of a tool.
func (r *Reader) answer(m *event.Message, o *parts.Members) error {
	id := o.Maybe("tool_call_id")
	if id == "" {
		id = r.unnamed
	}
	content, err := r.parts.MessageContent(o)
	if err != nil {
		return err
	}
	if m.Parts = content; len(m.ToolResults()) > 0 {
		return nil
	}
	if id == "" {
		o.Failed = true
		return nil
	}
	name := r.parts.Names[id]
	if name == "" {
		name = o.Maybe("name")
	} else if o.PeekText("name") == name {
		o.Take("name")
	}
	p := event.ToolResult(id, name, content...)
	p.IsError = o.Flag("is_error")
	m.Parts = []event.Part{p}
	return nil
}
