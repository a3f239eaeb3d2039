// Package parts parses the content of messages in the formats of Anthropic's
// Messages, OpenAI's Chat Completions and OpenAI's Responses. One reader serves all
// of them, because their names for content do not collide.
package parts

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// Reader parses content. It is used by one goroutine.
type Reader struct {
	// Names are the names of the tools called so far, by call id. The caller adds the
	// calls.
	Names map[string]string
	// Put stores the body of an image, a sound or a document. If it is nil, the body
	// stays in the Data of the part.
	Put func(body []byte) (event.BlobRef, error)
	// Known parses a block of another format. It returns a part without a type for an
	// unknown block. If it is nil, the reader uses the three formats of the package.
	Known func(o *Members, name string) (event.Part, error)
}

// Content parses the content of a message or a tool result: a text, blocks, one
// block, or null. Its errors are the errors of Put.
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

// Block parses a block of content. Unknown members go to the Extra of the part. An
// unknown block becomes an opaque part.
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

// known parses a block. The part has no type if the type of the block is unknown or
// a member is missing.
func (r *Reader) known(o *Members, name string) (p event.Part, err error) {
	switch name {
	case "text", "input_text", "output_text":
		o.Need("text")
		return event.Text(o.Text("text")), nil
	case "refusal":
		p = event.Text(o.Required("refusal"))
		o.Put("type", jsontext.Value(`"refusal"`))
		return p, nil
	case "thinking":
		o.Need("thinking")
		return event.Reasoning(o.Text("thinking"), o.Text("signature")), nil
	case "redacted_thinking":
		return event.Part{Type: event.ReasoningPart, Encrypted: o.Text("data"), Redacted: true}, nil
	case "tool_reference":
		return toolReference(o), nil
	case "tool_use", "server_tool_use":
		return call(o, name), nil
	case "tool_result":
		return r.result(o)
	case "image", "document":
		return r.anthropicMedia(o, name)
	case "image_url", "input_image", "input_audio", "file", "input_file":
		return r.openaiMedia(o, name)
	}
	return p, nil
}

// toolReference parses a tool that a search for tools found. Its text is for readers and
// for models of other providers.
func toolReference(o *Members) event.Part {
	p := event.Text("tool " + o.Required("tool_name"))
	o.Put("type", jsontext.Value(`"tool_reference"`))
	return p
}

func call(o *Members, name string) event.Part {
	o.Need("input")
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
	} else if cache := o.Take("cache_control"); o.Rest() != nil {
		o.Failed = true // the content has another name
	} else {
		o.Put("cache_control", cache)
	}
	return p, err
}
