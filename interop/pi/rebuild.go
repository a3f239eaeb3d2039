package pi

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/rebuild"
)

// restorer makes the records of pi again.
type restorer struct {
	body func(*event.Part) ([]byte, error)
}

var (
	recordOrders = [][]string{
		{"type", "id", "parentId", "timestamp", "message", "summary", "firstKeptEntryId", "firstKeptEntryIndex", "tokensBefore", "name", "provider", "model", "usage", "details"},
		{"type", "customType", "content", "display", "details", "id", "parentId", "timestamp", "fromId", "summary"},
		{"type", "timestamp", "summary", "firstKeptEntryIndex", "tokensBefore"},
		{"type", "id", "parentId", "timestamp", "fromId", "summary", "usage", "provider", "model"},
	}
	messageOrders = [][]string{
		{"role", "content", "api", "provider", "model", "usage", "stopReason", "timestamp", "responseId", "responseModel"},
		{"role", "content", "api", "provider", "model", "usage", "stopReason", "responseId", "timestamp"},
		{"role", "toolCallId", "toolName", "content", "details", "usage", "isError", "timestamp"},
		{"role", "toolCallId", "toolName", "content", "isError", "timestamp", "details"},
		{"role", "api", "provider", "model", "responseModel", "content", "usage", "stopReason", "responseId", "timestamp"},
		{"role", "toolCallId", "toolName", "content", "isError", "durationMs", "timestamp"},
		{"role", "command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath", "excludeFromContext", "timestamp"},
		{"role", "content", "timestamp", "api", "provider", "model", "responseId", "responseModel", "usage", "stopReason"},
	}
	textOrders  = [][]string{{"type", "text"}}
	callOrders  = [][]string{{"type", "id", "name", "arguments"}}
	usageOrders = [][]string{
		{"input", "output", "cacheRead", "cacheWrite", "reasoning", "totalTokens", "cost"},
		{"input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost", "reasoning"},
		{"input", "output", "reasoning", "cacheRead", "cacheWrite", "cost"},
	}
	itemOrders = [][]string{{"id", "type", "summary", "content", "encrypted_content", "status"}, {"id", "type", "content", "encrypted_content", "summary"}, {"type", "id", "summary", "encrypted_content"}, {"id", "type", "encrypted_content", "summary"}}
)

// record makes the record of an event again; nil if the event has none.
func (x *restorer) record(c *rebuild.Choices, e *event.Event) (jsontext.Value, error) {
	p, err := e.Payload()
	if err != nil {
		return nil, err
	}
	join := func(extra jsontext.Value, members ...rawjson.Member) jsontext.Value {
		return rebuild.Object(c.Order("record", recordOrders), extra, members...)
	}
	switch p := p.(type) {
	case event.Session:
		if len(p.Extra) == 0 || p.Source.Format != "" {
			return p.Extra, nil
		}
		return join(p.Extra, rebuild.Text("name", p.Title)), nil
	case event.Message:
		return x.message(c, &p)
	case event.ContextEntry:
		return x.context(c, &p)
	case event.StepCompletion:
		return join(p.Extra, rebuild.Text("provider", p.Provider), rebuild.Text("model", p.Model), rebuild.Member("usage", usage(c, &p.Usage))), nil
	case event.Compaction:
		if p.Strategy != "summary" {
			return p.Extra, nil
		}
		before := rebuild.Member("tokensBefore", strconv.AppendInt(nil, p.TokensBefore, 10))
		if p.TokensBefore == 0 && c.Is("without tokensBefore") {
			before.Value = nil
		}
		return join(p.Extra, rebuild.Member("summary", rebuild.Quote(p.Summary)), before), nil
	}
	return e.Data, nil
}

// message is the record of a message.
func (x *restorer) message(c *rebuild.Choices, m *event.Message) (jsontext.Value, error) {
	outer, _ := rawjson.Members(m.Extra)
	kept, inPlace := rawjson.Value(outer, "message")
	members := []rawjson.Member{rebuild.Text("role", string(m.Role))}
	parts := m.Parts
	if m.Role == event.Tool {
		p := &m.Parts[0]
		members = []rawjson.Member{
			rebuild.Text("role", "toolResult"), rebuild.Text("toolCallId", p.CallID), rebuild.Text("toolName", p.Name),
			rebuild.Member("isError", strconv.AppendBool(nil, p.IsError)),
		}
		if !p.IsError && c.Is("without isError") {
			members = members[:3]
		}
		parts = p.Content
	}
	if m.Role == event.Assistant {
		model := "model"
		if of, err := rawjson.Members(kept); err == nil {
			if _, ok := rawjson.Value(of, model); ok {
				model = "responseModel"
			}
		}
		members = append(members, rebuild.Text("provider", m.Provider), rebuild.Text(model, m.Model), rebuild.Text("responseId", m.ResponseID), rebuild.Text("stopReason", m.StopReason))
	}
	if m.Role == event.Assistant || !m.Usage.IsZero() || m.Usage.Extra != nil {
		members = append(members, rebuild.Member("usage", usage(c, &m.Usage)))
	}
	content, err := x.content(c, parts)
	if err != nil {
		return nil, err
	}
	message := rebuild.Object(c.Order("message", messageOrders), kept, append(members, rebuild.Member("content", content))...)
	if inPlace {
		return rawjson.Object(rawjson.Set(slices.Clone(outer), "message", message)), nil
	}
	return rebuild.Object(c.Order("record", recordOrders), m.Extra, rebuild.Member("message", message)), nil
}

// context is the record of content that is not a message.
func (x *restorer) context(c *rebuild.Choices, p *event.ContextEntry) (jsontext.Value, error) {
	outer, _ := rawjson.Members(p.Extra)
	kept, ok := rawjson.Value(outer, "message")
	order := c.Order("message", messageOrders)
	if ok && p.Kind == "bashExecution" {
		message := rebuild.Object(order, kept, rebuild.Member("output", rebuild.Quote(outputOf(c, kept, p.Parts[0].Text))))
		return rawjson.Object(rawjson.Set(slices.Clone(outer), "message", message)), nil
	}
	content, err := x.content(c, p.Parts)
	if err != nil {
		return nil, err
	}
	if ok {
		message := rebuild.Object(order, kept, rebuild.Member("content", content))
		return rawjson.Object(rawjson.Set(slices.Clone(outer), "message", message)), nil
	}
	name := "content"
	if p.Kind == "branch_summary" {
		name = "summary"
	}
	return rebuild.Object(c.Order("record", recordOrders), p.Extra, rebuild.Member(name, content)), nil
}

// outputOf is the output of a command, from the text that the model sees.
func outputOf(c *rebuild.Choices, kept jsontext.Value, text string) string {
	command, _, _ := rawjson.Lookup(kept, "command")
	line, _ := rawjson.Text(command)
	out := strings.TrimPrefix(text, "$ "+line+"\n")
	for _, mark := range []string{"\n[cut; all of it is in ", "\n[canceled]", "\n[exit code "} {
		if at := strings.LastIndex(out, mark); at >= 0 {
			out = out[:at] + strings.Repeat("\n", c.Of("newlines", 3))
		}
	}
	return out
}

// usage are the token counts of an answer; nil if it has none.
func usage(c *rebuild.Choices, u *event.Usage) jsontext.Value {
	if u.IsZero() && len(u.Extra) == 0 && !c.Is("usage") {
		return nil
	}
	number := func(name string, n int64, without bool) rawjson.Member {
		if n == 0 && c.Is("with or without "+name) != without {
			return rawjson.Member{Name: name}
		}
		return rebuild.Member(name, strconv.AppendInt(nil, n, 10))
	}
	return rebuild.Object(c.Order("usage order", usageOrders), u.Extra, number("input", u.InputTokens, false), number("output", u.OutputTokens, false),
		number("cacheRead", u.CacheReadTokens, false), number("cacheWrite", u.CacheWriteTokens, false), number("reasoning", u.ReasoningTokens, true))
}

// content is a text or blocks.
func (x *restorer) content(c *rebuild.Choices, parts []event.Part) (jsontext.Value, error) {
	if len(parts) == 1 && parts[0].Type == event.TextPart && parts[0].Extra == nil && c.Is("text") {
		return rebuild.Quote(parts[0].Text), nil
	}
	blocks := make([]jsontext.Value, 0, len(parts))
	for i := range parts {
		b, err := x.block(c, &parts[i])
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return rawjson.Array(blocks), nil
}

// block is the block of a part.
func (x *restorer) block(c *rebuild.Choices, p *event.Part) (jsontext.Value, error) {
	object := func(order []string, members ...rawjson.Member) jsontext.Value {
		return rebuild.Object(order, p.Extra, members...)
	}
	switch p.Type {
	case event.TextPart:
		return object(c.Order("text", textOrders), rebuild.Text("type", "text"), rebuild.Member("text", rebuild.Quote(p.Text))), nil
	case event.ReasoningPart:
		return thinkingBlock(c, p), nil
	case event.ToolCallPart:
		return object(c.Order("call", callOrders), rebuild.Text("type", "toolCall"), rebuild.Text("id", p.CallID), rebuild.Text("name", p.Name),
			rebuild.Member("arguments", p.Arguments)), nil
	case event.ImagePart:
		body, err := x.body(p)
		orders := [][]string{{"type", "data", "mimeType"}, {"type", "mimeType", "data"}}
		return object(c.Order("image", orders), rebuild.Text("type", "image"), rebuild.Text("data", base64.StdEncoding.EncodeToString(body)), rebuild.Text("mimeType", p.MediaType)), err
	}
	return p.Value, nil
}

// thinkingBlock is the block of reasoning.
func thinkingBlock(c *rebuild.Choices, p *event.Part) jsontext.Value {
	kept, _ := rawjson.Members(p.Extra)
	members := []rawjson.Member{rebuild.Text("type", "thinking"), rebuild.Member("thinking", rebuild.Quote(p.Text))}
	item, isItem := rawjson.Value(kept, "item")
	switch {
	case isItem:
		kept = slices.DeleteFunc(slices.Clone(kept), func(m rawjson.Member) bool { return m.Name == "item" })
		signature := rebuild.Object(c.Order("item", itemOrders), item, rebuild.Text("id", p.ID), rebuild.Text("encrypted_content", p.Encrypted))
		members = append(members, rebuild.Member("thinkingSignature", rebuild.Quote(string(signature))))
	case p.Redacted:
		members = append(members, rebuild.Text("thinkingSignature", p.Encrypted), rebuild.Member("redacted", jsontext.Value("true")))
	case p.Signature != "" || c.Is("empty signature"):
		members = append(members, rebuild.Member("thinkingSignature", rebuild.Quote(p.Signature)))
	}
	orders := [][]string{{"type", "thinking", "thinkingSignature", "redacted"}, {"type", "thinking", "redacted", "thinkingSignature"}}
	return rawjson.Object(rebuild.Join(c.Order("thinking", orders), kept, members...))
}
