package event

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/mark"
)

// Role is the speaker of a message.
type Role string

// The roles.
const System Role = "system"
const Developer Role = "developer"
const User Role = "user"
const Assistant Role = "assistant"
const Tool Role = "tool"

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
	// InputID is the input that the message is part of.
	InputID string `json:"input_id,omitzero"`
	Usage   Usage  `json:"usage,omitzero"`
	Parts   []Part `json:"parts,omitzero"`
	// Extra is an object of the provider's own members, in order, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// UserMessage makes a message of the user.
func UserMessage(text string) Event { return textMessage(User, text) }

// AssistantMessage makes a message of the assistant.
func AssistantMessage(text string) Event { return textMessage(Assistant, text) }

func textMessage(role Role, text string) Event {
	return New(Message{Role: role, Parts: []Part{Text(text)}})
}

// ToolMessage makes a message with the results of tool calls: see ToolResult.
func ToolMessage(results ...Part) Event { return New(Message{Role: Tool, Parts: results}) }

// ToolOutput makes a message with the output of one tool call. The output may be any
// bytes. Bytes that are not UTF-8 become U+FFFD; then the metadata of the event has
// the member repaired.
func ToolOutput(callID, name string, output []byte, isError bool) Event {
	result := ToolResult(callID, name, Text(strings.ToValidUTF8(string(output), "\uFFFD")))
	result.IsError = isError
	e := ToolMessage(result)
	if !utf8.Valid(output) {
		_ = e.mark(mark.Repaired, mark.InvalidUnicode) // a new event has no metadata that could be wrong
	}
	return e
}

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

// Validate checks the role, the parts, and the rules of conversation that need no
// other event: an assistant says something, a tool gives a result, no call id
// repeats. Rule("unknown_role"), Rule("empty_message"), Rule("duplicate_call"), OrphanResult and
// ErrInvalidPayload say which rule is broken. Structure is checked first: a message
// that breaks only a rule of conversation is well-formed.
func (m Message) Validate() error {
	if err := m.checkStructure(); err != nil {
		return err
	}
	if m.Role == Assistant && !slices.ContainsFunc(m.Parts, func(p Part) bool { return !p.empty() }) {
		return fmt.Errorf("%w: the assistant says nothing: parts are empty", emptyMessage)
	}
	o := m.Outline()
	if id, repeats := repeated(o.callIDs()); repeats {
		return fmt.Errorf("%w: call_id %q repeats in the message", duplicateCall, line.Clip(id))
	}
	if m.Role == Tool && len(o.Results) == 0 {
		return fmt.Errorf("%w: no tool_result among the parts of a tool message", OrphanResult)
	}
	if id, repeats := repeated(o.Results); repeats {
		return fmt.Errorf("%w: two results of call_id %q in the message", OrphanResult, line.Clip(id))
	}
	return nil
}

func (m Message) checkStructure() error {
	switch m.Role {
	case System, Developer, User, Assistant, Tool:
	default:
		return fmt.Errorf("%w: role is %q, not system, developer, user, assistant or tool", errRole, line.Clip(string(m.Role)))
	}
	return firstError(m.Usage.check(), requireExtra(m.Extra), checkParts(m.Parts))
}

// Blobs lists the blobs of Message.
func (m Message) Blobs() []Digest { return partsNeed(m.Parts) }

// repeated finds an id that occurs twice.
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
