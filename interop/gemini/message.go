package gemini

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// converter converts records to messages. The extra of a message has the members that
// were not converted.
type converter struct {
	// bodies are the bodies of images and documents. They are not in the log yet.
	bodies map[event.Digest][]byte
	// callers are the ids of the messages with the calls, by call id.
	callers map[string]string
}

// store stores the bodies of parts.
func (c *converter) store(ctx context.Context, log *eventlog.Log, all []event.Part) error {
	for i := range all {
		if body, ok := c.bodies[all[i].Blob.Blob]; ok {
			if _, err := log.PutBlob(ctx, bytes.NewReader(body)); err != nil {
				return err
			}
		}
		if err := c.store(ctx, log, all[i].Content); err != nil {
			return err
		}
	}
	return nil
}

// piece is one of the messages that a record becomes.
type piece struct {
	name string // unique in the session
	m    event.Message
	// isContext marks a message that the program wrote in the user's name.
	isContext bool
	// repeats says that the piece can be a copy of a stored piece without its other members.
	repeats bool
	// at is the time of a result that came after its message; else zero.
	at time.Time
}

// pieces converts a message of the user or the model.
func (c *converter) pieces(r *record) (all []piece, err error) {
	o := r.members
	m := event.Message{Role: event.User}
	if r.kind == "gemini" {
		m = event.Message{Role: event.Assistant, Provider: provider, Model: o.Maybe("model"), Group: r.id}
		if !r.usage().IsZero() {
			o.Take("tokens")
		}
		thoughts, whole := thoughtsOf(o.Peek("thoughts"))
		if m.Parts = thoughts; whole {
			o.Take("thoughts")
		}
	}
	hasContent := o.Has("content")
	content, exchange, err := c.exchange(r, &m, o.Take("content"))
	if err != nil {
		return nil, err
	}
	m.Parts = append(m.Parts, content...)
	calls, whole, err := c.calls(r.id, &m, o.Peek("toolCalls"))
	if err != nil {
		return nil, err
	}
	calls = append(without(exchange, calls), calls...)
	switch {
	case r.kind != "gemini":
	case whole:
		o.Take("toolCalls")
	default:
		m.Parts = append(m.Parts, event.Opaque("toolCalls", o.Take("toolCalls")))
	}
	if r.kind == "gemini" {
		m.Parts = append(m.Parts, unknownLists(&o)...)
	}
	if !hasContent && len(m.Parts) == 0 && len(calls) == 0 {
		m.Parts, o = []event.Part{event.Opaque("message", o.Rest())}, parts.Members{}
	}
	m.Extra = o.Rest()
	if len(m.Parts) > 0 || len(calls) == 0 {
		all = append(all, piece{name: "message " + r.id, m: m, isContext: r.isContext() || onlyResponses(&m)})
	}
	return append(all, calls...), nil
}

// unknownLists takes the lists of results that have another name than toolCalls.
func unknownLists(o *parts.Members) (all []event.Part) {
	members, err := rawjson.Members(o.Rest())
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Value.Kind() == '[' && bytes.Contains(m.Value, []byte(`"functionResponse"`)) && m.Name != "displayContent" {
			all = append(all, event.Opaque(m.Name, o.Take(m.Name)))
		}
	}
	return all
}

// thoughtsOf converts thoughts; whole is false if they are malformed.
func thoughtsOf(v jsontext.Value) (all []event.Part, whole bool) {
	if v.Kind() != '[' {
		return nil, v == nil
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil, false
	}
	for _, e := range elements {
		o, err := parts.Open(e)
		if err != nil {
			return nil, false
		}
		text := strings.Trim(o.Maybe("subject")+"\n\n"+o.Maybe("description"), "\n")
		p := event.Reasoning(text, "")
		p.Extra = o.Rest()
		all = append(all, p)
	}
	return all, true
}

// content converts a text, a part or a list of parts.
func (c *converter) content(v jsontext.Value) (all []event.Part, err error) {
	if v == nil || v.Kind() == 'n' {
		return nil, nil
	}
	for _, e := range listOf(v) {
		if s, ok := rawjson.Text(e); ok && s == "" {
			continue
		}
		p, err := c.part(e)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// listOf returns the elements of an array, or the value itself.
func listOf(v jsontext.Value) []jsontext.Value {
	if v.Kind() != '[' {
		return []jsontext.Value{v}
	}
	all, err := rawjson.Elements(v)
	if err != nil {
		return []jsontext.Value{v}
	}
	return all
}

// part converts a content part. An unknown part becomes opaque.
func (c *converter) part(v jsontext.Value) (p event.Part, err error) {
	if s, ok := rawjson.Text(v); ok {
		return event.Text(s), nil
	}
	o, err := parts.Open(v)
	if err != nil {
		return event.Opaque("part", v), nil
	}
	switch {
	case o.Has("text"):
		p = event.Text(o.Text("text"))
		if o.Peek("thought").Kind() == 't' {
			p.Type = event.ReasoningPart
		}
	case o.Has("inlineData"):
		p, err = c.inline(o.Take("inlineData"))
	case o.Has("fileData"):
		p = linked(o.Take("fileData"))
	}
	if err != nil {
		return p, err
	}
	if p.Type == "" || o.Failed {
		return event.Opaque(kindOf(v), v), nil
	}
	p.Extra = o.Rest()
	return p, nil
}

// kindOf is the name of the first member of a part.
func kindOf(v jsontext.Value) string {
	members, err := rawjson.Members(v)
	if err != nil || len(members) == 0 || members[0].Name == "" {
		return "part"
	}
	return members[0].Name
}

// inline converts a file with a body. The body will be a blob.
func (c *converter) inline(v jsontext.Value) (p event.Part, err error) {
	o, err := parts.Open(v)
	if err != nil {
		return p, nil
	}
	kind, name := o.Required("mimeType"), o.Maybe("displayName")
	body, err := base64.StdEncoding.DecodeString(o.Required("data"))
	if err != nil || len(body) == 0 || o.Failed || o.Rest() != nil {
		return p, nil
	}
	p = event.Part{Type: typeOf(kind), MediaType: kind, Name: name}
	p.Blob = event.BlobRef{Blob: event.DigestOf(body), Bytes: int64(len(body))}
	if c.bodies == nil {
		c.bodies = map[event.Digest][]byte{}
	}
	c.bodies[p.Blob.Blob] = body
	return p, nil
}

// linked converts a file with an address.
func linked(v jsontext.Value) (p event.Part) {
	o, err := parts.Open(v)
	if err != nil {
		return p
	}
	kind, address, name := o.Maybe("mimeType"), o.Required("fileUri"), o.Maybe("displayName")
	if o.Failed || o.Rest() != nil {
		return p
	}
	return event.Part{Type: typeOf(kind), MediaType: kind, Name: name, URL: address}
}

func typeOf(media string) event.PartType {
	switch kind, _, _ := strings.Cut(media, "/"); kind {
	case "image":
		return event.ImagePart
	case "audio":
		return event.AudioPart
	}
	return event.DocumentPart
}
