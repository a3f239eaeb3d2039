package claude

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

// restorer makes the lines of Claude Code again.
type restorer struct {
	body func(*event.Part) ([]byte, error)
}

// The members of objects, in the orders in which versions of Claude Code write them.
var (
	lineOrders = [][]string{
		{"isSidechain", "promptId", "agentId", "userType", "gitBranch", "slug", "type", "message", "uuid"},
		{"message", "type", "uuid"}, {"message", "requestId", "type", "uuid"}, {"timestamp", "message"}, {"uuid", "message"}, {"message", "isSidechain"},
	}
	messageOrders = [][]string{
		{"model", "id", "type", "role", "content", "stop_reason", "stop_sequence", "stop_details", "usage"},
		{"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"},
		{"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage"},
		{"role", "content", "id", "type", "model", "stop_reason", "stop_sequence", "usage"},
		{"type", "role", "content", "model", "id", "stop_reason", "usage"},
	}
	// syntheticOrders are for the answers that Claude Code makes itself.
	syntheticOrders = [][]string{{"id", "container", "model", "role", "stop_reason", "stop_sequence", "type", "usage", "content"}}
	usageOrders     = [][]string{
		{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation", "output_tokens", "server_tool_use", "service_tier"},
		{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"},
		{"output_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"},
		{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"},
		{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"},
	}
	resultOrders = [][]string{
		{"tool_use_id", "type", "content", "is_error"}, {"type", "content", "is_error", "tool_use_id"},
		{"type", "tool_use_id", "content", "is_error"}, {"content", "is_error", "tool_use_id", "type"},
	}
	callOrders   = [][]string{{"type", "id", "name", "input"}, {"id", "input", "name", "type"}}
	textOrders   = [][]string{{"type", "text"}, {"text", "type"}, {"citations", "type", "text"}}
	thinkOrders  = [][]string{{"type", "thinking", "signature"}, {"signature", "thinking", "type"}}
	imageOrders  = [][]string{{"type", "source"}, {"source", "type"}}
	sourceOrders = [][]string{{"type", "media_type", "data"}, {"type", "data", "media_type"}, {"data", "media_type", "type"}, {"media_type", "data", "type"}}
)

// record makes the line of an event again; nil if the event has none.
func (x *restorer) record(c *rebuild.Choices, e *event.Event) (jsontext.Value, error) {
	if m, ok, err := event.Decode[event.Message](e); ok && err == nil {
		record, err := x.line(c, &m)
		if err == nil && record != nil && c.Is("spaced") {
			record = rebuild.Spaced(record)
		}
		return record, err
	}
	if k, ok, err := event.Decode[event.Compaction](e); ok && err == nil && k.Strategy == "summary" {
		m := event.Message{Role: event.User, Parts: []event.Part{event.Text(k.Summary)}, Extra: k.Extra}
		if len(k.Entries) > 0 && k.Entries[0].Message != nil {
			m.Role, m.Parts = k.Entries[0].Message.Role, k.Entries[0].Message.Parts
		}
		return x.line(c, &m)
	}
	v, _ := rawRecord(e)
	return v, nil
}

// line is the line of a message.
func (x *restorer) line(c *rebuild.Choices, m *event.Message) (jsontext.Value, error) {
	content, err := x.content(c, string(m.Role), m.Parts)
	if err != nil {
		return nil, err
	}
	members, err := rawjson.Members(m.Extra)
	if err != nil {
		return nil, nil //nolint:nilerr // another program added the message
	}
	if kept, ok := rawjson.Value(members, "attachment"); ok {
		o := [][]string{{"type", "prompt"}, {"prompt", "type"}}
		prompt := rebuild.Object(c.Order("attachment", o), kept, rebuild.Member("prompt", content))
		return rawjson.Object(rawjson.Set(slices.Clone(members), "attachment", prompt)), nil
	}
	kept, inPlace := rawjson.Value(members, "message")
	message := x.message(c, m, kept, content)
	if inPlace {
		return rawjson.Object(rawjson.Set(slices.Clone(members), "message", message)), nil
	}
	return rawjson.Object(rebuild.Join(c.Order("line", lineOrders), members, rebuild.Member("message", message))), nil
}

// message is the message of a line. kept are the members that did not become fields.
func (x *restorer) message(c *rebuild.Choices, m *event.Message, kept, content jsontext.Value) jsontext.Value {
	if len(m.Parts) == 1 && m.Parts[0].Type == event.OpaquePart && m.Parts[0].Kind == "message" {
		return m.Parts[0].Value
	}
	role := string(m.Role)
	if m.Role == event.Tool {
		role = "user"
	}
	members := []rawjson.Member{rebuild.Text("role", role), rebuild.Member("content", content)}
	if m.Role == event.Assistant {
		members = append(members, rebuild.Text("model", m.Model), rebuild.Text("id", m.ResponseID), rebuild.Text("stop_reason", m.StopReason),
			rebuild.Member("usage", usage(c, &m.Usage, m.Model == "<synthetic>")))
		if m.Model == "<synthetic>" {
			return rebuild.Object(c.Order("synthetic", syntheticOrders), kept, members...)
		}
		return rebuild.Object(c.Order("message", messageOrders), kept, members...)
	}
	return rebuild.Object(c.Order("request", [][]string{{"role", "content"}, {"content", "role"}}), kept, members...)
}

// usage are the token counts of an answer; nil if it has none.
func usage(c *rebuild.Choices, u *event.Usage, synthetic bool) jsontext.Value {
	if u.IsZero() && len(u.Extra) == 0 && !c.Is("usage") {
		return nil
	}
	number := func(name string, n int64) rawjson.Member {
		if n == 0 && c.Is("without "+name) {
			return rawjson.Member{Name: name}
		}
		return rebuild.Member(name, strconv.AppendInt(nil, n, 10))
	}
	name := "usage order"
	if synthetic {
		name = "synthetic usage order"
	}
	return rebuild.Object(c.Order(name, usageOrders), u.Extra, number("input_tokens", u.InputTokens), number("output_tokens", u.OutputTokens),
		number("cache_read_input_tokens", u.CacheReadTokens), number("cache_creation_input_tokens", u.CacheWriteTokens))
}

// content is the content of a message or of a result: a text, or blocks.
func (x *restorer) content(c *rebuild.Choices, name string, parts []event.Part) (jsontext.Value, error) {
	switch {
	case len(parts) == 0:
		return []jsontext.Value{jsontext.Value("[]"), nil, jsontext.Value("null")}[c.Of(name+" empty", 3)], nil
	case len(parts) == 1 && parts[0].Type == event.TextPart && len(parts[0].Extra) == 0 && c.Is(name+" list") == (name == string(event.Assistant)):
		return rebuild.Quote(parts[0].Text), nil
	case len(parts) == 1 && parts[0].Type == event.OpaquePart && parts[0].Kind == "content":
		return parts[0].Value, nil
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
	object := func(name string, orders [][]string, members ...rawjson.Member) jsontext.Value {
		return rebuild.Object(c.Order(name, orders), p.Extra, members...)
	}
	switch p.Type {
	case event.TextPart:
		if name, ok := strings.CutPrefix(p.Text, "tool "); ok && rebuild.Kind(p.Extra) == "tool_reference" {
			return rawjson.Object([]rawjson.Member{rebuild.Text("type", "tool_reference"), rebuild.Text("tool_name", name)}), nil
		}
		return object("text", textOrders, rebuild.Text("type", "text"), rebuild.Member("text", rebuild.Quote(p.Text))), nil
	case event.ReasoningPart:
		if p.Redacted {
			return object("redacted", [][]string{{"type", "data"}, {"data", "type"}}, rebuild.Text("type", "redacted_thinking"), rebuild.Text("data", p.Encrypted)), nil
		}
		signature := rebuild.Text("signature", p.Signature)
		if p.Signature == "" && !c.Is("without signature") {
			signature.Value = jsontext.Value(`""`)
		}
		return object("thinking", thinkOrders, rebuild.Text("type", "thinking"), rebuild.Member("thinking", rebuild.Quote(p.Text)), signature), nil
	case event.ToolCallPart, event.ServerToolCallPart:
		kind := map[event.PartType]string{event.ToolCallPart: "tool_use", event.ServerToolCallPart: "server_tool_use"}[p.Type]
		return object("call", callOrders, rebuild.Text("type", kind), rebuild.Text("id", p.CallID), rebuild.Text("name", p.Name), rebuild.Member("input", p.Arguments)), nil
	case event.ToolResultPart:
		name := "result"
		if p.IsError {
			name = "failed result"
		}
		content, err := x.content(c, name, p.Content)
		failed := rebuild.Member("is_error", nil)
		switch {
		case p.IsError:
			failed.Value = jsontext.Value("true")
		case c.Is("is_error"):
			failed.Value = jsontext.Value("false")
		}
		return object(name+" order", resultOrders, rebuild.Text("type", "tool_result"), rebuild.Text("tool_use_id", p.CallID), rebuild.Member("content", content), failed), err
	case event.ImagePart, event.DocumentPart:
		source, err := x.source(c, p)
		return object("image", imageOrders, rebuild.Text("type", string(p.Type)), rebuild.Text("title", p.Name), rebuild.Member("source", source)), err
	}
	return p.Value, nil
}

// source is the source of an image or a document.
func (x *restorer) source(c *rebuild.Choices, p *event.Part) (jsontext.Value, error) {
	members := []rawjson.Member{rebuild.Text("type", "url"), rebuild.Text("media_type", p.MediaType), rebuild.Text("url", p.URL)}
	if p.URL == "" {
		body, err := x.body(p)
		if err != nil {
			return nil, err
		}
		members[0], members[2] = rebuild.Text("type", "base64"), rebuild.Text("data", base64.StdEncoding.EncodeToString(body))
		if c.Is("text source") {
			members[0], members[2] = rebuild.Text("type", "text"), rebuild.Text("data", string(body))
		}
	}
	return rebuild.Object(c.Order("source", sourceOrders), nil, members...), nil
}
