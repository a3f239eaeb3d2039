package transcript

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Argument is a member of a call's arguments: strings as their text, others as
// JSON.
type Argument struct{ Name, Text string }

// Arguments are those of a call, in order; a value that is no object is one
// without a name.
func Arguments(call *eventlog.Part) (all []Argument) {
	members, err := interop.Members(call.Arguments)
	if err != nil {
		if len(call.Arguments) == 0 {
			return nil
		}
		return []Argument{{Text: plain(call.Arguments)}}
	}
	for _, m := range members {
		all = append(all, Argument{m.Name, plain(m.Value)})
	}
	return all
}

func plain(v jsontext.Value) string {
	if text, ok := interop.Text(v); ok {
		return text
	}
	return string(v)
}

// Broken are the rules of conversation that an imported event breaks, as JSON;
// empty if it breaks none.
func (x *Entry) Broken() string {
	v, _ := x.Event.MetadataValue("broken")
	return string(v)
}
