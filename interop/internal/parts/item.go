package parts

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// Item parses an item of Responses that is no message: reasoning, a call, or the
// output of a call. Unknown members stay in o. ok is false for any other item. The
// call id of a server tool is the id of its item, which may be empty.
func (r *Reader) Item(o *Members) (role event.Role, p event.Part, ok bool, err error) {
	kind := o.PeekText("type")
	if tool, isOutput := strings.CutSuffix(kind, "_call_output"); isOutput {
		p, err = r.output(o, tool)
		return event.Tool, p, !o.Failed, err
	}
	switch tool, isCall := strings.CutSuffix(kind, "_call"); {
	case kind == "reasoning":
		return event.Assistant, reasoning(o), true, nil
	case kind == "tool_search_output":
		p = event.ToolResult(o.Required("call_id"), "tool_search", event.Opaque("tools", o.Take("tools")))
		p.ID = o.Maybe("id")
		return event.Tool, p, !o.Failed, nil
	case isCall && !servers[tool] && (tool != "tool_search" || o.Peek("call_id").Kind() == '"'):
		p := itemCall(o, tool)
		return event.Assistant, p, !o.Failed, nil
	case isCall:
		return event.Assistant, serverCall(o, tool), true, nil
	}
	return "", p, false, nil
}

// servers are the tools that the provider runs. It may run tool_search, too: the
// calls have no call id then.
var servers = map[string]bool{
	"web_search": true, "file_search": true, "image_generation": true, "code_interpreter": true, "mcp": true,
}

// itemCall parses a call of a tool that the client runs.
func itemCall(o *Members, tool string) event.Part {
	p := event.Part{Type: event.ToolCallPart, ID: o.Maybe("id"), Name: tool}
	if p.CallID = o.Maybe("call_id"); p.CallID == "" {
		p.CallID = p.ID // as in the first versions of local_shell
	}
	o.Failed = o.Failed || p.CallID == ""
	if tool == "function" {
		o.Take("type")
	}
	if o.Has("name") || tool == "function" || tool == "custom" {
		p.Name = o.Required("name")
	}
	o.Failed = o.Failed || !slices.ContainsFunc(argumentNames, o.Has)
	p.Arguments = takeArguments(o)
	return p
}

func serverCall(o *Members, tool string) event.Part {
	p := event.Part{Type: event.ServerToolCallPart, ID: o.Maybe("id"), Name: tool}
	p.CallID, p.Arguments = p.ID, takeArguments(o)
	return p
}

// argumentNames are the members with the arguments of a call.
var argumentNames = []string{"arguments", "input", "action", "operation"}

func takeArguments(o *Members) jsontext.Value {
	for _, name := range argumentNames {
		if v := o.Take(name); v != nil && name == "arguments" {
			return Arguments(v)
		} else if v != nil {
			return v
		}
	}
	return jsontext.Value(`{}`)
}

// output parses the result of a call.
func (r *Reader) output(o *Members, tool string) (event.Part, error) {
	if tool == "function" {
		o.Take("type")
	}
	o.Need("output")
	p := event.ToolResult(o.Required("call_id"), "")
	p.ID, p.Name = o.Maybe("id"), r.Names[p.CallID]
	v := o.Take("output")
	if text, ok := rawjson.Text(v); v == nil || ok && text == "" {
		return p, nil
	}
	if v.Kind() == '{' {
		part, err := r.Block(v)
		p.Content = []event.Part{part}
		return p, err
	}
	var err error
	p.Content, err = r.Content(v)
	return p, err
}

// reasoning parses reasoning. Its summaries become one text. Several summaries also
// stay in the members.
func reasoning(o *Members) event.Part {
	p := event.Part{Type: event.ReasoningPart, ID: o.Maybe("id"), Encrypted: o.Maybe("encrypted_content")}
	o.Take("type")
	var texts []string
	for _, name := range []string{"summary", "content"} {
		v := o.Peek(name)
		found, plain := textsOf(v)
		if texts = append(texts, found...); plain && len(found) < 2 {
			o.Take(name)
		}
	}
	p.Text = strings.Join(texts, "\n\n")
	return p
}

// textsOf returns the texts of a list of blocks; plain says that the list holds texts
// only.
func textsOf(v jsontext.Value) (texts []string, plain bool) {
	if v == nil || v.Kind() == 'n' {
		return nil, true
	}
	blocks, err := rawjson.Elements(v)
	if err != nil {
		return nil, false
	}
	plain = true
	for _, b := range blocks {
		o, err := Open(b)
		if err != nil {
			return texts, false
		}
		o.Take("type")
		if text := o.Text("text"); text != "" {
			texts = append(texts, text)
		}
		plain = plain && o.Rest() == nil && !o.Failed
	}
	return texts, plain
}
