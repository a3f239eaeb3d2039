package httpmodel

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

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

// Format is the format of the answers of an API.
type Format struct {
	// Parse parses a whole answer.
	Parse func(jsontext.Value) (event.Message, error)
	// ToolName is the name of a tool in a request.
	ToolName func(name string) string
	// Stops are the words for the stop reasons of the API.
	Stops map[string]string
	// NoFinish is the error of an answer without a stop reason.
	NoFinish error
}

// Answer parses a whole answer to a request of a model. Calls get the names of the tools
// back, and the stop reason becomes a word of Format.Stops. A word of the provider that is
// replaced goes to the Extra.
func (c *Call) Answer(answer jsontext.Value, f *Format, r *flow.Request, model string) (event.Message, error) {
	if v, ok, _ := rawjson.Lookup(answer, "error"); ok && v.Kind() != 'n' {
		return event.Message{}, c.Refusal(answer)
	}
	m, err := f.Parse(answer)
	if err == nil && m.StopReason == "" {
		err = f.NoFinish
	}
	if err != nil {
		return event.Message{}, c.Broken(err)
	}
	m.Provider, m.Model = c.Provider, cmp.Or(m.Model, r.Model, model)
	f.renameCalls(m.Parts, r.Tools)
	f.renameStop(&m)
	return m, nil
}

func (f *Format) renameCalls(parts []event.Part, tools []flow.ToolSpec) {
	names := map[string]string{} // by the name in the request, where the two differ
	for _, t := range tools {
		if name := f.ToolName(t.Name); name != t.Name {
			names[name] = t.Name
		}
	}
	for i := range parts {
		if name, ok := names[parts[i].Name]; ok && parts[i].Type == event.ToolCallPart {
			parts[i].Name = name
		}
	}
}

func (f *Format) renameStop(m *event.Message) {
	word, ok := f.Stops[m.StopReason]
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
