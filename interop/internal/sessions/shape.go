package sessions

import (
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
)

// Shape is the structure of an event that redaction keeps. A redacted event is
// recognized by it.
type Shape struct {
	// Types are the types that the record's event can have.
	Types []event.Type
	// Role, Calls and Results describe a message: its role and its call ids.
	Role           event.Role
	Calls, Results []string
}

// ShapeOf is the shape of a payload or, if the log would not accept the payload, of a raw
// event of the type.
func ShapeOf(p event.Payload, raw event.Type) Shape {
	if p == nil || !records.Acceptable(p) {
		return Shape{Types: []event.Type{raw}}
	}
	if m, ok := p.(event.Message); ok {
		return MessageShape(&m)
	}
	return Shape{Types: []event.Type{p.EventType()}}
}

var messageTypes = []event.Type{event.MessageAdded}

// MessageShape is the shape of a message that the log accepts.
func MessageShape(m *event.Message) Shape {
	s := Shape{Types: messageTypes, Role: m.Role}
	for i := range m.Parts {
		switch m.Parts[i].Type {
		case event.ToolCallPart:
			s.Calls = append(s.Calls, m.Parts[i].CallID)
		case event.ToolResultPart:
			s.Results = append(s.Results, m.Parts[i].CallID)
		}
	}
	return s
}

// KeptShape is the shape of a redacted event.
func KeptShape(e *event.Event) (Shape, error) {
	s := Shape{Types: []event.Type{e.Type}}
	if e.Type.Name() != event.MessageAdded {
		return s, nil
	}
	kept, err := event.DecodeKept[keptMessage](e)
	s.Role, s.Calls, s.Results = kept.Role, kept.Calls, kept.Results
	return s, err
}

// keptMessage are the members that redaction keeps of a message.
type keptMessage struct {
	Role    event.Role `json:"role"`
	Calls   []string   `json:"calls"`
	Results []string   `json:"results"`
}

// Fits reports whether a record of shape s can have become the redacted event of shape
// kept.
func (s *Shape) Fits(kept *Shape) bool {
	t := kept.Types[0]
	if !slices.Contains(s.Types, t) {
		return false
	}
	return t.Name() != event.MessageAdded || kept.Role == "" ||
		s.Role == kept.Role && slices.Equal(s.Calls, kept.Calls) && slices.Equal(s.Results, kept.Results)
}
