package lists

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// item reads an item of Responses that has no role.
func (r *reader) item(o *parts.Members, kind string, v jsontext.Value) (m eventlog.Message, ok bool, err error) {
	if kind == "message" {
		return m, false, nil
	}
	if tool, isOutput := strings.CutSuffix(kind, "_call_output"); isOutput && o.Has("call_id") {
		m.Role = eventlog.Tool
		p, err := r.output(o, tool)
		m.Parts = []eventlog.Part{p}
		return m, true, err
	}
	m.Role = eventlog.Assistant
	tool, isCall := strings.CutSuffix(kind, "_call")
	switch {
	case kind == "reasoning":
		m.Parts = []eventlog.Part{reasoning(o)}
	case isCall && o.Has("call_id"):
		m.Parts = []eventlog.Part{itemCall(o, tool)}
	case isCall || kind == "mcp_list_tools":
		// The provider's own tools: what they did stays as it is.
		m.Parts = []eventlog.Part{eventlog.Opaque(kind, v)}
		*o = parts.Members{}
	default:
		return m, false, nil
	}
	return m, true, nil
}

// itemCall reads a call that the caller answers: of a function, or of a tool of
// the provider's that runs elsewhere.
func itemCall(o *parts.Members, tool string) eventlog.Part {
	p := eventlog.Part{Type: eventlog.ToolCallPart, ID: o.Maybe("id"), CallID: o.Required("call_id"), Name: tool}
	if tool == "function" {
		o.Take("type")
	}
	if o.Has("name") {
		p.Name = o.Required("name")
	}
	for _, name := range []string{"arguments", "input", "action", "operation"} {
		if v := o.Take(name); v != nil && p.Arguments == nil {
			p.Arguments = v
			if name == "arguments" {
				p.Arguments = parts.Arguments(v)
			}
		}
	}
	return p
}

// output reads the result of a call.
func (r *reader) output(o *parts.Members, tool string) (eventlog.Part, error) {
	if tool == "function" {
		o.Take("type")
	}
	p := eventlog.ToolResult(o.Required("call_id"), "")
	p.ID, p.Name = o.Maybe("id"), r.Names[p.CallID]
	v := o.Take("output")
	if text, ok := interop.Text(v); v == nil || ok && text == "" {
		return p, nil
	}
	if v.Kind() == '{' {
		part, err := r.Block(v)
		p.Content = []eventlog.Part{part}
		return p, err
	}
	var err error
	p.Content, err = r.Content(v)
	return p, err
}

// reasoning reads what a model thought. Summaries become one text; where they
// were several, they also stay as they were.
func reasoning(o *parts.Members) eventlog.Part {
	p := eventlog.Part{Type: eventlog.ReasoningPart, ID: o.Maybe("id"), Encrypted: o.Maybe("encrypted_content")}
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

// textsOf are the texts of a list of blocks. plain says that there is nothing
// else in it.
func textsOf(v jsontext.Value) (texts []string, plain bool) {
	if v.Kind() == 'n' {
		return nil, true
	}
	blocks, err := interop.Elements(v)
	if err != nil {
		return nil, false
	}
	plain = true
	for _, b := range blocks {
		o, err := parts.Open(b)
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
