// Package parts reads the content of messages in the shapes of Anthropic's
// Messages, OpenAI's Chat Completions and OpenAI's Responses, whose names for
// the pieces of content do not collide.
package parts

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// Reader reads content. It is used by one goroutine.
type Reader struct {
	// Names are the names of the tools called so far, by call id. Calls that are
	// read are not added.
	Names map[string]string
	// Put keeps the body of an image, a sound or a document. Without it, bodies
	// stay in the Data of their parts.
	Put func(body []byte) (event.BlobRef, error)
	// Known reads a block of another format's types. The part has no type where
	// there is no such. Without it, the types are those of the shapes.
	Known func(o *Members, name string) (event.Part, error)
}

// Content reads what a message or a tool result says: a text, blocks, one
// block, or null. An error is one of Put.
func (r *Reader) Content(v jsontext.Value) (parts []event.Part, err error) {
	switch v.Kind() {
	case '"':
		s, _ := rawjson.Text(v)
		return []event.Part{event.Text(s)}, nil
	case 'n':
		return nil, nil
	case '[':
	default:
		return []event.Part{event.Opaque("content", v)}, nil
	}
	blocks, err := rawjson.Elements(v)
	if err != nil {
		return nil, fmt.Errorf("split content: %w", err)
	}
	for _, b := range blocks {
		part, err := r.Block(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// Block reads a piece of content. What the part has no member for stays in its
// Extra. One that is not of a known shape becomes an opaque part.
func (r *Reader) Block(v jsontext.Value) (event.Part, error) {
	if s, ok := rawjson.Text(v); ok {
		return event.Text(s), nil
	}
	o, err := Open(v)
	if err != nil {
		return event.Opaque("block", v), nil
	}
	known := r.known
	if r.Known != nil {
		known = r.Known
	}
	name := o.Text("type")
	p, err := known(&o, name)
	if err != nil {
		return p, err
	}
	if p.Type == "" || o.Failed {
		if name == "" {
			name = "block"
		}
		return event.Opaque(name, v), nil
	}
	p.Extra = o.Rest()
	return p, nil
}

// known reads a block of a known type. The part has no type where there is no
// such, or the block lacks what it needs.
func (r *Reader) known(o *Members, name string) (p event.Part, err error) {
	switch name {
	case "text", "input_text", "output_text":
		return event.Text(o.Text("text")), nil
	case "refusal":
		p = event.Text(o.Required("refusal"))
		o.Put("type", jsontext.Value(`"refusal"`))
		return p, nil
	case "thinking":
		return event.Reasoning(o.Text("thinking"), o.Text("signature")), nil
	case "redacted_thinking":
		return event.Part{Type: event.ReasoningPart, Encrypted: o.Text("data"), Redacted: true}, nil
	case "tool_use", "server_tool_use":
		return call(o, name), nil
	case "tool_result":
		return r.result(o)
	case "image", "document":
		return r.sourced(o, name)
	case "image_url", "input_image", "input_audio", "file", "input_file":
		return r.attached(o, name)
	}
	return p, nil
}

func call(o *Members, name string) event.Part {
	p := event.ToolCall(o.Required("id"), o.Required("name"), o.Take("input"))
	if name == "server_tool_use" {
		p.Type = event.ServerToolCallPart
	}
	return p
}

func (r *Reader) result(o *Members) (p event.Part, err error) {
	id := o.Required("tool_use_id")
	p = event.ToolResult(id, r.Names[id])
	p.IsError = o.Flag("is_error")
	if v := o.Take("content"); v != nil {
		p.Content, err = r.Content(v)
	}
	return p, err
}
