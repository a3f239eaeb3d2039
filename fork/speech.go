package fork

import (
	"bytes"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// speech is what a message says of turns and calls, redacted or not.
type speech struct {
	Role    event.Role `json:"role"`
	Calls   []string   `json:"calls"`   // of a redacted message
	Results []string   `json:"results"` // of a redacted message
	Parts   []struct {
		Type   event.PartType `json:"type"`
		CallID string         `json:"call_id"`
		Name   string         `json:"name"`
	} `json:"parts"`
}

// name is that of the tool of a call; empty where it is not known.
func (s *speech) name(call string) string {
	for _, p := range s.Parts {
		if p.Type == event.ToolCallPart && p.CallID == call {
			return p.Name
		}
	}
	return ""
}

// speechOf reads a message_added; ok is false for any other event.
func speechOf(e *event.Event) (s speech, ok bool, err error) {
	if e.Type.Name() != event.MessageAdded {
		return s, false, nil
	}
	if role, ok := plainRole(e); ok {
		s.Role = role
		return s, true, nil
	}
	if err := decodeStructure(e, &s); err != nil {
		return s, true, err
	}
	for _, p := range s.Parts {
		switch p.Type {
		case event.ToolCallPart:
			s.Calls = append(s.Calls, p.CallID)
		case event.ToolResultPart:
			s.Results = append(s.Results, p.CallID)
		}
	}
	return s, true, nil
}

// asks reports whether the user says something, besides giving results.
func (s *speech) asks() bool {
	if s.Role != event.User {
		return false
	}
	return len(s.Results) == 0 || len(s.Parts) > len(s.Results)
}

// plainRole is the role of a message that neither calls nor answers a call, read
// without the rest of it; ok is false where that cannot be told so quickly.
func plainRole(e *event.Event) (role event.Role, ok bool) {
	if e.Redacted() || bytes.Contains(e.Data, []byte(`"call_id"`)) || bytes.Contains(e.Data, []byte(`\u`)) {
		return "", false
	}
	value, ok, err := rawjson.Lookup(e.Data, "role")
	if err != nil || !ok {
		return "", false
	}
	text, ok := rawjson.Text(value)
	return event.Role(text), ok
}
