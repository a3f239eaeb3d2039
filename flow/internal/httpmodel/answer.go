package httpmodel

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/rawjson"
)

// Merge adds a member to members: null adds nothing, an array is appended to an array,
// an object is merged with an object, and any other value replaces the value before.
func Merge(members []rawjson.Member, m rawjson.Member) []rawjson.Member {
	before, _ := rawjson.Value(members, m.Name)
	switch kind := m.Value.Kind(); {
	case kind == 'n':
		return members
	case kind == '[' && before.Kind() == '[':
		m.Value = joined(before, m.Value)
	case kind == '{' && before.Kind() == '{':
		inner, _ := rawjson.Members(before) // both are well-formed
		more, _ := rawjson.Members(m.Value)
		for _, x := range more {
			inner = Merge(inner, x)
		}
		m.Value = rawjson.Object(inner)
	}
	return rawjson.Set(members, m.Name, m.Value)
}

// Replace sets a member; null sets nothing.
func Replace(members []rawjson.Member, m rawjson.Member) []rawjson.Member {
	if m.Value.Kind() == 'n' {
		return members
	}
	return rawjson.Set(members, m.Name, m.Value)
}

// EmitWhole emits the parts of an answer that was not streamed.
func EmitWhole(parts []event.Part, emit func(eventlog.Delta)) {
	for i := range parts {
		p := &parts[i]
		piece := p.Text
		if p.Type == event.ToolCallPart || p.Type == event.ServerToolCallPart {
			piece = string(p.Arguments)
		}
		if piece != "" {
			emit(eventlog.Delta{Part: i, Kind: p.Type, Text: piece})
		}
	}
}

// Names are the names of tools by their names in a request, where the two differ.
type Names map[string]string

// NamesOf lists the tools whose names a provider does not accept.
func NamesOf(tools []flow.Tool, inRequest func(string) string) Names {
	names := Names{}
	for _, t := range tools {
		if name := inRequest(t.Name); name != t.Name {
			names[name] = t.Name
		}
	}
	return names
}

// Finish completes the message of an answer: calls get the names of the tools back, and
// the stop reason becomes one of the words of stops. If the provider's word is another
// one, it goes to the Extra.
func Finish(m *event.Message, names Names, stops map[string]string) {
	for i := range m.Parts {
		if name, ok := names[m.Parts[i].Name]; ok && m.Parts[i].Type == event.ToolCallPart {
			m.Parts[i].Name = name
		}
	}
	word, ok := stops[m.StopReason]
	if !ok || word == m.StopReason {
		return
	}
	var extra []rawjson.Member
	if m.Extra != nil {
		extra, _ = rawjson.Members(m.Extra) // an Extra is an object
	}
	b := Body(extra)
	b.Set("stop_reason", m.StopReason)
	m.StopReason, m.Extra = word, b.JSON()
}
