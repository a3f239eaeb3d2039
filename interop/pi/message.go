package pi

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// converter converts records to messages and context entries. The extra is the record
// without the converted members.
type converter struct {
	ctx context.Context
	// log stores the bodies of images; nil stores none.
	log *eventlog.Log
}

// message converts the message of a record; p is nil if the record stays raw.
func (c *converter) message(f *facts) (p event.Payload, cost event.Cost, err error) {
	var m event.Message
	o := f.message
	switch f.role {
	case "user":
		m.Role = event.User
	case "assistant":
		m.Role = event.Assistant
		cost = c.assistant(&m, &o)
	case "toolResult":
		m.Role = event.Tool
		m.Parts, err = c.result(&o)
		if usage, spent, ok := usageOf(o.Peek("usage")); ok {
			m.Usage, cost = usage, spent
			o.Take("usage")
		}
	case "bashExecution":
		return c.command(f), 0, nil
	case "custom", "hookMessage":
		p, err = c.context(f, o.PeekText("customType"), o.Peek("content"), "")
		return p, 0, err
	default:
		return nil, 0, nil
	}
	if f.role != "toolResult" {
		o.Need("content")
	}
	if v := o.Take("content"); v != nil && err == nil {
		m.Parts, err = c.content(v)
	}
	if err != nil || o.Failed {
		return nil, 0, err
	}
	o.Take("role")
	m.Extra = f.replaceMember("message", o.Rest())
	return m, cost, nil
}

// assistant converts the members of an assistant message other than its content.
func (c *converter) assistant(m *event.Message, o *parts.Members) (cost event.Cost) {
	m.Provider, m.Model = o.Maybe("provider"), o.Maybe("responseModel")
	if m.Model == "" {
		m.Model = o.Maybe("model")
	}
	m.ResponseID, m.StopReason = o.Maybe("responseId"), o.Maybe("stopReason")
	var ok bool
	if m.Usage, cost, ok = usageOf(o.Peek("usage")); ok {
		o.Take("usage")
	}
	return cost
}

// result converts a toolResult.
func (c *converter) result(o *parts.Members) ([]event.Part, error) {
	p := event.ToolResult(o.Required("toolCallId"), o.Maybe("toolName"))
	p.IsError = o.Flag("isError")
	o.Need("content")
	var err error
	if v := o.Take("content"); v != nil {
		p.Content, err = c.content(v)
	}
	return []event.Part{p}, err
}

// command converts a command of the user; nil if the model does not see it.
func (c *converter) command(f *facts) event.Payload {
	o := f.message
	if o.Take("excludeFromContext").Kind() == 't' {
		return nil
	}
	text := "$ " + o.Maybe("command") + "\n" + o.Maybe("output")
	if code := o.Peek("exitCode"); code.Kind() == '0' && string(code) != "0" {
		text = strings.TrimRight(text, "\n") + "\n[exit code " + string(code) + "]"
	}
	if o.Peek("cancelled").Kind() == 't' {
		text = strings.TrimRight(text, "\n") + "\n[canceled]"
	}
	if path := o.PeekText("fullOutputPath"); path != "" {
		text = strings.TrimRight(text, "\n") + "\n[cut; all of it is in " + path + "]"
	}
	rest := f.message
	rest.Take("output")
	return event.ContextEntry{
		Kind: f.role, Placement: event.InHistory, Parts: []event.Part{event.Text(text)},
		Extra: f.replaceMember("message", rest.Rest()),
	}
}

// context converts content that is not a message; nil if it is empty. member is the
// member of the record that contains v; empty if the message contains it.
func (c *converter) context(f *facts, kind string, v jsontext.Value, member string) (event.Payload, error) {
	if v == nil {
		return nil, nil
	}
	content, err := c.content(v)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	extra := f.withoutMembers(member)
	if member == "" {
		o := f.message
		o.Take("content")
		extra = f.replaceMember("message", o.Rest())
	}
	return event.ContextEntry{Kind: kind, Placement: event.InHistory, Parts: content, Extra: extra}, nil
}

// content converts a text or blocks.
func (c *converter) content(v jsontext.Value) ([]event.Part, error) {
	r := parts.Reader{Known: c.block}
	return r.Content(v)
}

// block converts a content block. The part has no type if the block is unknown.
func (c *converter) block(o *parts.Members, kind string) (p event.Part, err error) {
	switch kind {
	case "text":
		o.Need("text")
		return event.Text(o.Text("text")), nil
	case "thinking":
		return thinking(o), nil
	case "toolCall":
		o.Need("arguments")
		return event.ToolCall(o.Required("id"), o.Required("name"), o.Take("arguments")), nil
	case "image":
		return c.image(o)
	}
	return p, nil
}

// thinking converts reasoning. Its signature is Anthropic's signature, encrypted
// reasoning without text, or a whole item of OpenAI.
func thinking(o *parts.Members) event.Part {
	p := event.Reasoning(o.Text("thinking"), o.Maybe("thinkingSignature"))
	if o.Peek("redacted").Kind() == 't' {
		o.Take("redacted")
		p.Redacted, p.Encrypted, p.Signature = true, p.Signature, ""
		return p
	}
	item, err := parts.Open(jsontext.Value(p.Signature))
	if err != nil || item.PeekText("type") != "reasoning" {
		return p
	}
	p.Signature, p.ID, p.Encrypted = "", item.Maybe("id"), item.Maybe("encrypted_content")
	o.Put("item", item.Rest())
	return p
}

// image converts an image. Its body becomes a blob.
func (c *converter) image(o *parts.Members) (p event.Part, err error) {
	body, err := base64.StdEncoding.DecodeString(o.Required("data"))
	if err != nil || len(body) == 0 {
		return p, nil
	}
	if c.log == nil {
		return event.Part{Type: event.ImagePart, MediaType: o.Text("mimeType"), Data: body}, nil
	}
	ref, err := c.log.PutBlob(c.ctx, bytes.NewReader(body))
	return event.Image(o.Text("mimeType"), ref), err
}

// usageOf parses token counts and their cost; ok is false if a count is invalid.
func usageOf(v jsontext.Value) (u event.Usage, cost event.Cost, ok bool) {
	members, err := rawjson.Members(v)
	if err != nil || v == nil {
		return u, 0, false
	}
	fields := map[string]*int64{
		"input": &u.InputTokens, "output": &u.OutputTokens, "cacheRead": &u.CacheReadTokens, "cacheWrite": &u.CacheWriteTokens,
		"reasoning": &u.ReasoningTokens,
	}
	rest := members[:0]
	for _, m := range members {
		field := fields[m.Name]
		if field == nil || m.Value.Kind() != '0' {
			rest = append(rest, m)
		} else if json.Unmarshal(m.Value, field) != nil || *field < 0 {
			return event.Usage{}, 0, false
		}
		if m.Name == "cost" {
			cost = costOf(m.Value)
		}
	}
	u.Extra = rawjson.NonEmpty(rest)
	return u, cost, true
}

// costOf parses a cost in dollars; 0 if invalid.
func costOf(v jsontext.Value) event.Cost {
	var dollars struct {
		Total float64 `json:"total"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &dollars) != nil {
		return 0
	}
	cost, err := event.USD(dollars.Total)
	if err != nil {
		return 0
	}
	return cost
}
