package claude

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// converter turns the messages of records into messages of the log.
type converter struct {
	ctx context.Context
	log *eventlog.Log
	// calls are the names of the tools called so far, by call id.
	calls map[string]string
}

// message converts a user or assistant record. What the log's message has no
// member for stays in its extra: the record without what was converted. ok is
// false when the record holds no message.
func (c *converter) message(f *facts, record jsontext.Value) (m eventlog.Message, ok bool, err error) {
	inner, err := interop.Members(f.Message)
	if err != nil || len(f.Message) == 0 {
		return m, false, nil
	}
	m.Role = eventlog.Role(f.Type)
	rest := inner[:0:0]
	for _, member := range inner {
		taken, err := c.take(&m, member)
		if err != nil {
			return m, false, err
		}
		if !taken {
			rest = append(rest, member)
		}
	}
	if len(m.ToolResults()) > 0 && m.Role == eventlog.User {
		m.Role = eventlog.Tool
	}
	if m.Role == eventlog.Assistant {
		m.Provider, m.Group = "anthropic", m.ResponseID
	}
	m.Extra, err = extraOf(record, interop.Object(rest))
	return m, err == nil, err
}

// take converts one member of the provider's message.
func (c *converter) take(m *eventlog.Message, member interop.Member) (taken bool, err error) {
	switch member.Name {
	case "role":
		role, _ := interop.Text(member.Value)
		return role == string(m.Role), nil
	case "model":
		m.Model, taken = interop.Text(member.Value)
	case "id":
		m.ResponseID, taken = interop.Text(member.Value)
	case "stop_reason":
		m.StopReason, taken = interop.Text(member.Value)
	case "usage":
		m.Usage, taken = usageOf(member.Value)
	case "content":
		m.Parts, err = c.content(member.Value)
		return err == nil, err
	}
	return taken, nil
}

// extraOf is the record with rest in place of its message.
func extraOf(record, rest jsontext.Value) (jsontext.Value, error) {
	all, err := interop.Members(record)
	if err != nil {
		return nil, fmt.Errorf("split record: %w", err)
	}
	kept := all[:0]
	for _, member := range all {
		if member.Name == "message" {
			member.Value = rest
		}
		if member.Value != nil {
			kept = append(kept, member)
		}
	}
	return interop.Object(kept), nil
}

// usageOf reads token counts; ok is false when they are not what they should be.
func usageOf(v jsontext.Value) (u eventlog.Usage, ok bool) {
	members, err := interop.Members(v)
	if err != nil {
		return u, false
	}
	fields := map[string]*int64{
		"input_tokens": &u.InputTokens, "output_tokens": &u.OutputTokens,
		"cache_read_input_tokens": &u.CacheReadTokens, "cache_creation_input_tokens": &u.CacheWriteTokens,
	}
	rest := members[:0]
	for _, m := range members {
		field := fields[m.Name]
		if field == nil || m.Value.Kind() != '0' {
			rest = append(rest, m)
		} else if json.Unmarshal(m.Value, field) != nil || *field < 0 {
			return eventlog.Usage{}, false
		}
	}
	u.Extra = interop.Object(rest)
	return u, true
}

// content converts what a message or a tool result says.
func (c *converter) content(v jsontext.Value) (parts []eventlog.Part, err error) {
	switch v.Kind() {
	case '"':
		s, _ := interop.Text(v)
		return []eventlog.Part{eventlog.Text(s)}, nil
	case 'n':
		return nil, nil
	case '[':
	default:
		return []eventlog.Part{eventlog.Opaque("content", v)}, nil
	}
	blocks, err := interop.Elements(v)
	if err != nil {
		return nil, fmt.Errorf("split content: %w", err)
	}
	for _, b := range blocks {
		part, err := c.block(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// block converts a content block. One that is not of a known shape becomes an
// opaque part.
func (c *converter) block(v jsontext.Value) (eventlog.Part, error) {
	if s, ok := interop.Text(v); ok {
		return eventlog.Text(s), nil
	}
	members, err := interop.Members(v)
	if err != nil {
		return eventlog.Opaque("block", v), nil
	}
	b := block{members: members}
	name := b.text("type")
	var p eventlog.Part
	switch name {
	case "text":
		p = eventlog.Text(b.text("text"))
	case "thinking":
		p = eventlog.Reasoning(b.text("thinking"), b.text("signature"))
	case "redacted_thinking":
		p = eventlog.Part{Type: eventlog.ReasoningPart, Encrypted: b.text("data"), Redacted: true}
	case "tool_use", "server_tool_use":
		p = c.call(&b, name)
	case "tool_result":
		p, err = c.result(&b)
	case "image", "document":
		p, err = c.media(&b, name)
	}
	if err != nil {
		return p, err
	}
	if p.Type == "" || b.failed {
		if name == "" {
			name = "block"
		}
		return eventlog.Opaque(name, v), nil
	}
	p.Extra = interop.Object(b.members)
	return p, nil
}

func (c *converter) call(b *block, name string) eventlog.Part {
	p := eventlog.ToolCall(b.required("id"), b.required("name"), b.take("input"))
	if name == "server_tool_use" {
		p.Type = eventlog.ServerToolCallPart
	}
	return p
}

func (c *converter) result(b *block) (p eventlog.Part, err error) {
	id := b.required("tool_use_id")
	p = eventlog.ToolResult(id, c.calls[id])
	p.IsError = b.flag("is_error")
	if v := b.take("content"); v != nil {
		p.Content, err = c.content(v)
	}
	return p, err
}

// media converts an image or a document: base64 becomes a blob, an address
// stays one.
func (c *converter) media(b *block, name string) (p eventlog.Part, err error) {
	var source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	}
	v := b.take("source")
	if v == nil || json.Unmarshal(v, &source) != nil {
		return p, nil
	}
	p = eventlog.Part{Type: eventlog.PartType(name), MediaType: source.MediaType, Name: b.text("title")}
	switch source.Type {
	case "base64":
		body, err := base64.StdEncoding.DecodeString(source.Data)
		if err != nil || len(body) == 0 {
			return eventlog.Part{}, nil
		}
		p.Blob, err = c.log.PutBlob(c.ctx, bytes.NewReader(body))
		return p, err
	case "url":
		p.URL = source.URL
		b.failed = b.failed || p.URL == ""
		return p, nil
	}
	return eventlog.Part{}, nil
}

// block is a content block that is being converted: members are what is left.
type block struct {
	members []interop.Member
	failed  bool
}

// take removes a member and gives its value; nil if there is none.
func (b *block) take(name string) jsontext.Value {
	for i, m := range b.members {
		if m.Name == name {
			b.members = append(b.members[:i:i], b.members[i+1:]...)
			return m.Value
		}
	}
	return nil
}

// text takes a string. The block fails where the member is something else.
func (b *block) text(name string) string {
	v := b.take(name)
	if v == nil {
		return ""
	}
	s, ok := interop.Text(v)
	b.failed = b.failed || !ok
	return s
}

func (b *block) required(name string) string {
	s := b.text(name)
	b.failed = b.failed || s == ""
	return s
}

// flag takes a boolean; null is false.
func (b *block) flag(name string) bool {
	v := b.take(name)
	b.failed = b.failed || v != nil && v.Kind() != 't' && v.Kind() != 'f' && v.Kind() != 'n'
	return v.Kind() == 't'
}
