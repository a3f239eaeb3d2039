package eventlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Role says who speaks in a message.
type Role string

// The roles.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is the payload of message_added.
type Message struct {
	Role     Role   `json:"role"`
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	// ResponseID is the provider's id of the response.
	ResponseID string `json:"response_id,omitzero"`
	StopReason string `json:"stop_reason,omitzero"`
	// Group joins messages that are pieces of one provider message: parts in
	// order, the last usage counts.
	Group string `json:"group,omitzero"`
	Usage Usage  `json:"usage,omitzero"`
	Parts []Part `json:"parts,omitzero"`
	// Extra is an object of the provider's own members, in order, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewMessage makes a message_added. ErrInvalidRole is an unknown role,
// ErrInvalidMessage an assistant that says nothing, ErrInvalidCall a call id
// that repeats in the message, ErrInvalidResult a tool message without a result
// or a result that repeats, ErrInvalidPayload a part that lacks a member.
func NewMessage(m Message) (Event, error) { return NewEvent(m) }

// NewSystemMessage makes a message of the system.
func NewSystemMessage(text string) (Event, error) { return newText(System, text) }

// NewUserMessage makes a message of the user.
func NewUserMessage(text string) (Event, error) { return newText(User, text) }

// NewAssistantMessage makes a message of the assistant; it must not be empty.
func NewAssistantMessage(text string) (Event, error) { return newText(Assistant, text) }

// NewToolResult makes a tool message with the result of one call.
func NewToolResult(callID, name, text string, isError bool) (Event, error) {
	result := ToolResult(callID, name, Text(text))
	result.IsError = isError
	return NewMessage(Message{Role: Tool, Parts: []Part{result}})
}

func newText(role Role, text string) (Event, error) {
	return NewMessage(Message{Role: role, Parts: []Part{Text(text)}})
}

// Message reads a message_added. ok is false when e is of another type. The
// error is ErrRedacted, ErrVersion or ErrInvalidPayload.
func (e *Event) Message() (m Message, ok bool, err error) { return decode[Message](e, MessageAdded) }

// EventType is message_added.
func (m Message) EventType() Type { return MessageAdded }

// Text joins the text parts.
func (m Message) Text() string {
	var text strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Type == TextPart {
			text.WriteString(m.Parts[i].Text)
		}
	}
	return text.String()
}

// ToolCalls are the tool_call parts in order. Calls that the provider's own
// server answers are not among them.
func (m Message) ToolCalls() []Part { return m.partsOf(ToolCallPart) }

// ToolResults are the tool_result parts in order.
func (m Message) ToolResults() []Part { return m.partsOf(ToolResultPart) }

func (m Message) partsOf(t PartType) (parts []Part) {
	for i := range m.Parts {
		if m.Parts[i].Type == t {
			parts = append(parts, m.Parts[i])
		}
	}
	return parts
}

func (m Message) callIDs() []string   { return m.idsOf(ToolCallPart) }
func (m Message) resultIDs() []string { return m.idsOf(ToolResultPart) }

func (m Message) idsOf(t PartType) (ids []string) {
	for i := range m.Parts {
		if m.Parts[i].Type == t {
			ids = append(ids, m.Parts[i].CallID)
		}
	}
	return ids
}

// check looks at the structure first: a message that breaks only a rule of
// conversation is well-formed.
func (m Message) check() error {
	if err := m.checkStructure(); err != nil {
		return err
	}
	if m.Role == Assistant && !slices.ContainsFunc(m.Parts, func(p Part) bool { return !p.empty() }) {
		return fmt.Errorf("%w: the assistant says nothing: parts are empty", ErrInvalidMessage)
	}
	if id, repeats := repeated(m.callIDs()); repeats {
		return fmt.Errorf("%w: call_id %q repeats in the message", ErrInvalidCall, clip(id))
	}
	results := m.resultIDs()
	if m.Role == Tool && len(results) == 0 {
		return fmt.Errorf("%w: no tool_result among the parts of a tool message", ErrInvalidResult)
	}
	if id, repeats := repeated(results); repeats {
		return fmt.Errorf("%w: two results of call_id %q in the message", ErrInvalidResult, clip(id))
	}
	return nil
}

func (m Message) checkStructure() error {
	switch m.Role {
	case System, Developer, User, Assistant, Tool:
	default:
		return fmt.Errorf("%w: role is %q, not system, developer, user, assistant or tool", ErrInvalidRole, clip(string(m.Role)))
	}
	return firstError(m.Usage.check(), requireExtra(m.Extra), checkParts(m.Parts))
}

func (m Message) needs() []Digest { return partsNeed(m.Parts) }

// repeated finds an id that stands twice; messages have few.
func repeated(ids []string) (string, bool) {
	if len(ids) > 32 {
		return repeatedOfMany(ids)
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return id, true
		}
	}
	return "", false
}

func repeatedOfMany(ids []string) (string, bool) {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return id, true
		}
		seen[id] = true
	}
	return "", false
}
