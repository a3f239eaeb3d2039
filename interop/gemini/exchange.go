package gemini

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// exchange converts content. A function call in it becomes a piece with the call, a function
// response a piece with the result. A file after a response belongs to the result.
func (c *converter) exchange(r *record, m *event.Message, v jsontext.Value) (content []event.Part, all []piece, err error) {
	if v.Kind() != '[' {
		content, err = c.content(v)
		return content, nil, err
	}
	var result *event.Part // the result of the response before
	for _, e := range listOf(v) {
		if call, ok := functionCall(e); ok {
			said := event.Message{Role: event.Assistant, Provider: m.Provider, Model: m.Model, Group: r.id, Parts: []event.Part{call}}
			all, result = append(all, piece{name: "call " + r.id + " " + call.CallID, m: said, repeats: true}), nil
			continue
		}
		p, ok, err := c.functionResponse(e)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			all = append(all, c.answered(r, p))
			result = &all[len(all)-1].m.Parts[0]
			continue
		}
		one, err := c.content(e)
		if err != nil {
			return nil, nil, err
		}
		if result != nil && len(one) == 1 && isFile(&one[0]) {
			result.Content = append(result.Content, one...)
			continue
		}
		content, result = append(content, one...), nil
	}
	return content, all, nil
}

// without returns the pieces that have another name than the others: a message can have a call
// in its content and in its list of calls.
func without(all, others []piece) []piece {
	return slices.DeleteFunc(all, func(p piece) bool {
		return slices.ContainsFunc(others, func(o piece) bool { return o.name == p.name })
	})
}

func isFile(p *event.Part) bool {
	return p.Type == event.ImagePart || p.Type == event.AudioPart || p.Type == event.DocumentPart
}

// functionCall converts a part with a call. It reports false for any other part, and for a
// call without an id.
func functionCall(v jsontext.Value) (call event.Part, ok bool) {
	outer, err := parts.Open(v)
	if err != nil || !outer.Has("functionCall") {
		return call, false
	}
	o, err := parts.Open(outer.Take("functionCall"))
	if err != nil {
		return call, false
	}
	o.Need("args")
	call = event.ToolCall(o.Required("id"), o.Required("name"), o.Take("args"))
	if o.Failed || o.Rest() != nil {
		return call, false
	}
	call.Extra = outer.Rest()
	return call, true
}

// functionResponse converts a part with a result. It reports false for any other part, and
// for a result without an id.
func (c *converter) functionResponse(v jsontext.Value) (result event.Part, ok bool, err error) {
	outer, err := parts.Open(v)
	if err != nil || !outer.Has("functionResponse") {
		return result, false, nil
	}
	o, err := parts.Open(outer.Peek("functionResponse"))
	if err != nil || o.PeekText("id") == "" || o.PeekText("name") == "" || !o.Has("response") {
		return result, false, nil
	}
	result = event.ToolResult(o.PeekText("id"), o.PeekText("name"))
	content, state, err := c.response(&result, v)
	result.Content, result.IsError = content, state.failed
	if state.incomplete {
		result.Extra = v
	}
	return result, true, err
}

// answered is the piece of a result. It has the name that the result gets in the message with
// the call, so that the session has the result once.
func (c *converter) answered(r *record, result event.Part) piece {
	caller := c.callers[result.CallID]
	if caller == "" {
		caller = r.id
	}
	extra, _ := jsontext.AppendQuote([]byte(`{"id":`), r.id) // the id was parsed from JSON
	return piece{
		name: "result " + caller + " " + result.CallID, repeats: true,
		m: event.Message{Role: event.Tool, Parts: []event.Part{result}, Extra: append(extra, '}')},
	}
}

// onlyResponses reports whether a message has nothing but function responses without an id.
func onlyResponses(m *event.Message) bool {
	for i := range m.Parts {
		if !strings.Contains(string(m.Parts[i].Value), `"functionResponse"`) {
			return false
		}
	}
	return m.Role == event.User && len(m.Parts) > 0
}

// contextMarks begin the messages that the program writes in the user's name.
var contextMarks = []string{"<session_context>", "This is the Gemini CLI. We are setting up the context for our chat."}

// isContext reports whether the program wrote the message in the user's name.
func (r *record) isContext() bool {
	v := r.members.Peek("content")
	if r.kind != "user" || v == nil {
		return false
	}
	all := listOf(v)
	if len(all) == 0 {
		return false
	}
	text, ok := rawjson.Text(all[0])
	if o, err := parts.Open(all[0]); !ok && err == nil {
		text = o.PeekText("text")
	}
	for _, mark := range contextMarks {
		if strings.HasPrefix(strings.TrimSpace(text), mark) {
			return true
		}
	}
	return false
}
