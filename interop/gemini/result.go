package gemini

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// calls converts tool calls: each call is a piece, and so is its result. whole is false
// if the calls are malformed.
func (c *converter) calls(id string, m *event.Message, v jsontext.Value) (all []piece, whole bool, err error) {
	if v.Kind() != '[' {
		return nil, v == nil, nil
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil, false, nil
	}
	for _, e := range elements {
		o, err := parts.Open(e)
		if err != nil {
			return nil, false, nil
		}
		o.Need("args")
		call := event.ToolCall(o.Required("id"), o.Required("name"), o.Take("args"))
		if o.Failed {
			return nil, false, nil
		}
		callMessage := event.Message{Role: m.Role, Provider: m.Provider, Model: m.Model, Group: m.Group, Parts: []event.Part{call}}
		at := records.Time(o.PeekText("timestamp"))
		result, answered, err := c.result(&call, &o)
		if err != nil {
			return nil, false, err
		}
		if !answered {
			callMessage.Parts[0].Extra = o.Rest()
		}
		all = append(all, piece{name: "call " + id + " " + call.CallID, m: callMessage})
		if answered {
			extra, _ := jsontext.AppendQuote([]byte(`{"id":`), id) // the id was parsed from JSON
			all = append(all, piece{name: "result " + id + " " + call.CallID, m: event.Message{
				Role: event.Tool, Parts: []event.Part{result}, Extra: append(extra, '}'),
			}, at: at})
		}
	}
	return all, true, nil
}

// result converts the result of a call, with the other members of the call in its extra.
// answered is false if there is no result yet.
func (c *converter) result(call *event.Part, o *parts.Members) (p event.Part, answered bool, err error) {
	v := o.Peek("result")
	if v == nil || v.Kind() == 'n' {
		return p, false, nil
	}
	p = event.ToolResult(call.CallID, call.Name)
	status := o.PeekText("status")
	p.IsError = status == "error" || status == "cancelled"
	complete := true
	for _, e := range listOf(v) {
		content, a, err := c.response(call, e)
		if err != nil {
			return p, false, err
		}
		p.IsError, complete = p.IsError || a.failed, complete && !a.incomplete
		p.Content = append(p.Content, content...)
	}
	if complete {
		o.Take("result")
	}
	p.Extra = o.Rest()
	return p, true, nil
}

// resultState reports whether the tool failed, and whether the part has members that
// were not converted.
type resultState struct{ failed, incomplete bool }

// response converts a part of a result.
func (c *converter) response(call *event.Part, v jsontext.Value) (content []event.Part, a resultState, err error) {
	outer, err := parts.Open(v)
	if err != nil || !outer.Has("functionResponse") {
		p, err := c.part(v)
		return []event.Part{p}, a, err
	}
	o, err := parts.Open(outer.Take("functionResponse"))
	if err != nil || !o.Has("response") {
		return []event.Part{event.Opaque("functionResponse", v)}, a, nil
	}
	text, failed := outputOf(o.Take("response"))
	failed = failed || call.Name == shellTool && exitCode(text) != 0
	media, err := c.content(o.Take("parts"))
	for name, known := range map[string]string{"id": call.CallID, "name": call.Name} {
		if s, ok := rawjson.Text(o.Peek(name)); ok && s == known {
			o.Take(name)
		}
	}
	return append([]event.Part{event.Text(text)}, media...), resultState{failed, o.Rest() != nil || outer.Rest() != nil}, err
}

// outputOf is the output or error of a tool, or else its whole response.
func outputOf(response jsontext.Value) (text string, failed bool) {
	o, err := parts.Open(response)
	if err != nil {
		return string(response), false
	}
	failed = o.Has("error")
	for _, name := range []string{"output", "error"} {
		if text := o.Maybe(name); text != "" && o.Rest() == nil {
			return text, failed
		}
	}
	return string(response), failed
}

// shellTool is the name of the tool that runs a command.
const shellTool = "run_shell_command"

// exitCode is the exit code in the result of a command; 0 if the result has none. The program
// writes it after the output of the command.
func exitCode(text string) (code int) {
	for line := range strings.Lines(text) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "Exit Code: "); ok {
			code, _ = strconv.Atoi(s) // a text that is no number is no exit code
		}
	}
	return code
}
