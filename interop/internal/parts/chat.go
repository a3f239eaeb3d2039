package parts

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// ChatContent parses the reasoning and the content of a message of Chat Completions, in
// this order. An empty text makes no part. Reasoning under both of its names makes one
// part if the texts are equal.
func (r *Reader) ChatContent(o *Members) (all []event.Part, err error) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if text := o.Maybe(name); text != "" && (len(all) == 0 || all[0].Text != text) {
			all = append(all, event.Reasoning(text, ""))
		}
	}
	content, err := r.MessageContent(o)
	return append(all, content...), err
}

// MessageContent parses the content of a message. An empty text makes no part.
func (r *Reader) MessageContent(o *Members) ([]event.Part, error) {
	v := o.Take("content")
	if text, ok := rawjson.Text(v); v == nil || ok && text == "" {
		return nil, nil
	}
	if v.Kind() == '{' {
		p, err := r.Block(v)
		return []event.Part{p}, err
	}
	return r.Content(v)
}

// ChatReply parses the refusal and the calls of an assistant message of Chat
// Completions. madeID returns the id of the n-th call, which has none. A member
// tool_calls that is no array stays in o.
func ChatReply(o *Members, madeID func(n int) string) (all []event.Part) {
	if text := o.Maybe("refusal"); text != "" {
		p := event.Text(text)
		p.Extra = jsontext.Value(`{"type":"refusal"}`)
		all = append(all, p)
	}
	calls, err := rawjson.Elements(o.Peek("tool_calls"))
	if err == nil {
		o.Take("tool_calls")
	}
	for i, v := range calls {
		all = append(all, chatCall(v, func() string { return madeID(i) }))
	}
	return all
}

// chatCall parses an element of tool_calls.
func chatCall(v jsontext.Value, madeID func() string) event.Part {
	o, err := Open(v)
	if err != nil {
		return event.Opaque("tool_call", v)
	}
	kind, id := o.Text("type"), o.Text("id")
	holder := "function"
	if kind == "custom" {
		holder = kind
	}
	f, err := Open(o.Take(holder))
	if err != nil || o.Failed {
		return event.Opaque("tool_call", v)
	}
	if id == "" {
		if hasText(&o) { // the id may have another name
			return event.Opaque("tool_call", v)
		}
		id = madeID()
	}
	p := ChatFunction(&f, id)
	if f.Failed {
		return event.Opaque("tool_call", v)
	}
	if kind == "custom" {
		o.Put("type", jsontext.Value(`"custom"`))
	}
	if p.Extra != nil {
		o.Put(holder, p.Extra)
	}
	p.Extra = o.Rest()
	return p
}

// hasText reports whether a member that is not parsed yet is a text.
func hasText(o *Members) bool {
	return o.many.hasText() || slices.ContainsFunc(o.members, func(m rawjson.Member) bool { return m.Value.Kind() == '"' })
}

// ChatFunction parses the name and the arguments of a call. It sets Failed of f if the
// name is missing.
func ChatFunction(f *Members, id string) event.Part {
	name := f.Required("name")
	lacks := !f.Has("input") && !f.Has("arguments")
	arguments := f.Take("input") // the text for a custom tool
	if v := f.Take("arguments"); v != nil {
		arguments = Arguments(v)
	}
	p := event.ToolCall(id, name, arguments)
	p.Extra = f.Rest()
	f.Failed = f.Failed || lacks && p.Extra != nil // the arguments have another name
	return p
}
