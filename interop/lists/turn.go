package lists

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
)

// turnsName is the member with turns. A turn has its speaker under "from", and its
// text under "value".
const turnsName = "conversations"

// speakers maps the speaker of a turn to the role of its message.
var speakers = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant", "model": "assistant",
	"bard": "assistant", "bing": "assistant", "system": "system", "function_call": "assistant", "tool_call": "assistant",
	"observation": messages.LegacyTool, "tool": messages.LegacyTool, "function_response": messages.LegacyTool, "tool_response": messages.LegacyTool,
}

// isTurn reports whether a value is a turn.
func isTurn(v jsontext.Value) bool {
	o, err := parts.Open(v)
	return err == nil && speakers[o.PeekText("from")] != "" && o.Peek("value").Kind() == '"'
}

// messageOf makes a message of a turn, and returns any other element. A turn with a call
// becomes a function_call if its value has the name of a function.
func messageOf(turn jsontext.Value) jsontext.Value {
	if !isTurn(turn) {
		return turn
	}
	o, _ := parts.Open(turn) // isTurn has checked it
	from := o.PeekText("from")
	text, _ := rawjson.Text(o.Peek("value"))
	role := []rawjson.Member{{Name: "role", Value: jsontext.Value(`"` + speakers[from] + `"`)}}
	m, _ := parts.Open(rawjson.NonEmpty(role))
	if call := jsontext.Value(text); (from == "function_call" || from == "tool_call") && isCall(call) {
		o.Take("value")
		m.Put("content", jsontext.Value("null"))
		m.Put("function_call", call)
	} else {
		m.Put("content", o.Take("value"))
	}
	o.Take("from")
	for _, name := range []string{"role", "content", "function_call"} {
		if v := o.Take(name); v != nil {
			m.Put("turn_"+name, v)
		}
	}
	rest, _ := rawjson.Members(o.Rest()) // nil or an object
	for _, member := range rest {
		m.Put(member.Name, member.Value)
	}
	return m.Rest()
}

// isCall reports whether a value has the name of a function.
func isCall(v jsontext.Value) bool {
	if !v.IsValid() {
		return false
	}
	o, err := parts.Open(v)
	return err == nil && o.PeekText("name") != ""
}
