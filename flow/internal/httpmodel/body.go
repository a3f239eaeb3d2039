package httpmodel

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// Body is the body of a request under construction.
type Body []rawjson.Member

// Set sets a member. A value that cannot be encoded panics.
func (b *Body) Set(name string, v any) {
	raw, ok := v.(jsontext.Value)
	if !ok {
		var err error
		if raw, err = json.Marshal(v, jsontext.AllowInvalidUTF8(true)); err != nil {
			panic(err)
		}
	}
	*b = rawjson.Set(*b, name, raw)
}

// Merge adds the members of an object. A member replaces one of the same name, and a
// null removes it. The elements of "tools" are added to the tools of the body. A member
// in fixed is an error.
func (b *Body) Merge(parameters jsontext.Value, fixed ...string) error {
	if parameters == nil {
		return nil
	}
	members, err := rawjson.Members(parameters)
	if err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	for _, m := range members {
		before, _ := rawjson.Value(*b, m.Name)
		switch {
		case slices.Contains(fixed, m.Name):
			return fmt.Errorf("parameters: %q cannot be set there", m.Name)
		case m.Value.Kind() == 'n':
			*b = slices.DeleteFunc(*b, func(x rawjson.Member) bool { return x.Name == m.Name })
		case m.Name == "tools" && before != nil && m.Value.Kind() == '[':
			b.Set(m.Name, joined(before, m.Value))
		default:
			b.Set(m.Name, m.Value)
		}
	}
	return nil
}

// joined is an array of the elements of two arrays.
func joined(a, b jsontext.Value) jsontext.Value {
	first, _ := rawjson.Elements(a) // both are arrays
	second, _ := rawjson.Elements(b)
	return rawjson.Array(append(first, second...))
}

// JSON is the body.
func (b *Body) JSON() jsontext.Value { return rawjson.Object(*b) }

// SetTools sets the member tools, if there are tools. member makes the description of a
// tool, whose Parameters are set.
func (b *Body) SetTools(tools []flow.ToolSpec, member func(flow.ToolSpec) any) {
	all := make([]any, len(tools))
	for i, t := range tools {
		if t.Parameters == nil {
			t.Parameters = noArguments
		}
		all[i] = member(t)
	}
	if len(all) > 0 {
		b.Set("tools", all)
	}
}

var noArguments = jsontext.Value(`{"type":"object","properties":{}}`)

// History is the history of a request, with the system text as the first message.
func History(r *flow.Request) []projection.Entry {
	if r.System == "" {
		return r.Messages
	}
	system := event.Message{Role: event.System, Parts: []event.Part{event.Text(r.System)}}
	return append([]projection.Entry{{Message: system}}, r.Messages...)
}
