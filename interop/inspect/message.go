package inspect

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// converter turns messages of a sample into messages of the log.
type converter struct {
	model       string
	attachments map[string]string
	answers     map[string]answerFacts
	names       map[string]string // of tools, by call
	ids         []string          // of the messages so far
}

// item converts a message. A message of an unknown shape is stored raw.
func (c *converter) item(rec *records.Record) document.Item {
	c.ids = append(c.ids, "")
	o, err := parts.Open(rec.Value)
	if err != nil {
		return document.Raw(*rec, "message")
	}
	it := document.Item{Rec: *rec, Kind: "message"}
	id := o.PeekText("id")
	c.ids[len(c.ids)-1] = id
	m := event.Message{Role: event.Role(o.Text("role"))}
	switch m.Role {
	case event.Assistant:
		c.answer(&m, &o, id)
	case event.Tool:
		c.result(&m, &o)
	case event.System, event.User:
		m.Parts = c.content(o.Take("content"))
	default:
		o.Failed = true
	}
	if o.Failed {
		return document.Raw(*rec, "message")
	}
	m.Extra = o.Rest()
	it.Payload = m
	return it
}

// answer parses an answer of a model.
func (c *converter) answer(m *event.Message, o *parts.Members, id string) {
	if m.Model = o.Maybe("model"); m.Model == "" {
		m.Model = c.model
	}
	m.Usage = c.answers[id].usage
	if text := o.Maybe("reasoning"); text != "" {
		m.Parts = append(m.Parts, event.Reasoning(c.text(text), ""))
	}
	m.Parts = append(m.Parts, c.content(o.Take("content"))...)
	calls, err := rawjson.Elements(o.Peek("tool_calls"))
	if err != nil {
		return
	}
	o.Take("tool_calls")
	for _, v := range calls {
		m.Parts = append(m.Parts, c.call(v))
	}
}

// call parses a call; an invalid call becomes an opaque part.
func (c *converter) call(v jsontext.Value) event.Part {
	o, err := parts.Open(v)
	if err != nil {
		return event.Opaque("tool_call", v)
	}
	p := event.ToolCall(o.Required("id"), o.Required("function"), o.Take("arguments"))
	if o.Failed {
		return event.Opaque("tool_call", v)
	}
	if kind := o.PeekText("type"); kind == "function" {
		o.Take("type")
	}
	c.names[p.CallID] = p.Name
	p.Extra = o.Rest()
	return p
}

// result parses the result of a call: the output, or the error message.
func (c *converter) result(m *event.Message, o *parts.Members) {
	id, name := o.Required("tool_call_id"), o.Maybe("function")
	if called := c.names[id]; called != "" {
		name = called
	}
	p := event.ToolResult(id, name, c.content(o.Take("content"))...)
	if failure := o.Peek("error"); failure.Kind() == '{' {
		p.IsError = true
		var toolError struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(failure, &toolError) == nil && len(p.Content) == 0 && toolError.Message != "" {
			p.Content = []event.Part{event.Text(toolError.Message)}
		}
	}
	m.Parts = []event.Part{p}
}

// attachmentPrefix starts a reference to an attachment.
const attachmentPrefix = "attachment://"

// text returns the attachment that a text refers to, or the text itself.
func (c *converter) text(text string) string {
	if name, ok := strings.CutPrefix(text, attachmentPrefix); ok {
		if whole, ok := c.attachments[name]; ok {
			return whole
		}
	}
	return text
}

// content parses the content of a message: a text, or a list of pieces.
func (c *converter) content(v jsontext.Value) (all []event.Part) {
	if text, ok := rawjson.Text(v); ok {
		if text == "" {
			return nil
		}
		return []event.Part{event.Text(c.text(text))}
	}
	pieces, err := rawjson.Elements(v)
	if err != nil {
		if v == nil || v.Kind() == 'n' {
			return nil
		}
		return []event.Part{event.Opaque("content", v)}
	}
	for _, piece := range pieces {
		all = append(all, c.piece(piece))
	}
	return all
}

// piece parses a piece of content; an unknown piece becomes an opaque part.
func (c *converter) piece(v jsontext.Value) (p event.Part) {
	o, err := parts.Open(v)
	if err != nil {
		return event.Opaque("content", v)
	}
	kind := o.Text("type")
	switch kind {
	case "text":
		p = event.Text(c.text(o.Text("text")))
	case "reasoning":
		p = event.Reasoning(c.text(o.Text("reasoning")), o.Maybe("signature"))
		if p.Redacted = o.Flag("redacted"); p.Redacted {
			p.Encrypted, p.Text = p.Text, ""
		}
	case "image":
		p = c.image(o.Required("image"))
	}
	if p.Type == "" || o.Failed {
		return event.Opaque(nameOf(kind), v)
	}
	p.Extra = o.Rest()
	return p
}

func nameOf(kind string) string {
	if kind == "" {
		return "content"
	}
	return kind
}

// image parses an image: a URL, or data in a data URL. The part has no type if the
// address is invalid.
func (c *converter) image(address string) event.Part {
	return parts.FromURL(event.ImagePart, c.text(address))
}
