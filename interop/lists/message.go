package lists

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// legacyTool is the role of a result in the times before call ids.
const legacyTool = "function"

// reader parses the elements of a conversation as messages, in order.
type reader struct {
	parts.Reader // with the Names of all calls so far
	shape        shape
	model        string
	number       int // of the elements so far
	// at, kind and hasRole describe the newest element: its time, zero if it has none;
	// its type, empty if it has none; and whether it has a role.
	at      time.Time
	kind    string
	hasRole bool
	// unnamed is the id of the newest call without one.
	unnamed string
}

func newReader(c *conversation) *reader {
	if c.shape == "" {
		c.shape = shapeOf(c)
	}
	return &reader{Reader: parts.Reader{Names: map[string]string{}}, shape: c.shape, model: c.model}
}

// message parses the next element; ok is false if it is no message.
func (r *reader) message(v jsontext.Value) (m event.Message, ok bool, err error) {
	r.number++
	r.at, r.kind, r.hasRole = time.Time{}, "", false
	o, err := parts.Open(v)
	if err != nil {
		return m, false, nil
	}
	r.at, r.kind, r.hasRole = timeOf(&o), o.PeekText("type"), o.Has("role")
	if !r.hasRole && isItemType(r.kind) {
		m, ok, err = r.item(&o, r.kind, v)
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
		r.Names[call.CallID] = call.Name
	}
	return m, true, nil
}

// fillIn sets the provider and the model of an answer.
func (r *reader) fillIn(m *event.Message) {
	m.Provider = r.shape.provider()
	if m.Model == "" {
		m.Model = r.model
	}
}

// withRole parses a message with a role.
func (r *reader) withRole(o *parts.Members) (m event.Message, ok bool, err error) {
	role := o.Text("role")
	if !isRole(role) {
		return m, false, nil
	}
	m.Role = event.Role(role)
	if t := o.PeekText("type"); t == "message" {
		o.Take("type")
	}
	if role == "tool" || role == legacyTool {
		m.Role = event.Tool
		return m, true, r.answer(&m, o)
	}
	content, err := r.ChatContent(o)
	m.Parts = append(m.Parts, content...)
	if len(m.ToolResults()) > 0 && m.Role == event.User {
		m.Role = event.Tool
	}
	if m.Role == event.Assistant {
		r.reply(&m, o)
	}
	return m, true, err
}

// reply parses the members that only the assistant's messages have.
func (r *reader) reply(m *event.Message, o *parts.Members) {
	m.Parts = append(m.Parts, parts.ChatReply(o, func(n int) string {
		r.unnamed = r.madeID(n)
		return r.unnamed
	})...)
	if f, err := parts.Open(o.Peek("function_call")); err == nil {
		o.Take("function_call")
		r.unnamed = r.madeID(len(m.ToolCalls()))
		m.Parts = append(m.Parts, parts.ChatFunction(&f, r.unnamed))
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
func (r *reader) madeID(n int) string { return fmt.Sprintf("call_%d_%d", r.number, n) }

// answer parses a message of a tool.
func (r *reader) answer(m *event.Message, o *parts.Members) error {
	id := o.Maybe("tool_call_id")
	if id == "" {
		id = r.unnamed
	}
	content, err := r.MessageContent(o)
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
	name := r.Names[id]
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
