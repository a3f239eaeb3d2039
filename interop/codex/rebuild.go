package codex

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/rebuild"
)

// The members of items, in the orders in which versions of Codex write them.
var (
	itemOrders = [][]string{
		{"type", "id", "role", "content", "name", "namespace", "arguments", "status", "call_id", "output", "phase"},
		{"type", "status", "id", "role", "content", "name", "namespace", "arguments", "call_id", "output", "phase"},
		{"type", "status", "call_id", "name", "input", "output", "action"},
		{"type", "id", "status", "call_id", "name", "namespace", "input", "output", "action"},
		{"type", "id", "status", "call_id", "name", "input", "action"},
		{"type", "id", "author", "recipient", "role", "content"},
		{"type", "id", "call_id", "name", "arguments", "output"},
		{"id", "type", "role", "content", "name", "arguments", "call_id"},
		{"type", "id", "call_id", "status", "action"},
		{"content", "role", "type"},
		{"type", "call_id", "output", "id"},
		{"type", "execution", "call_id", "tools", "arguments", "status"},
		{"type", "call_id", "status", "execution", "arguments", "tools"},
	}
	blockOrders     = [][]string{{"type", "text"}}
	imageOrders     = [][]string{{"type", "image_url", "detail"}}
	reasoningOrders = [][]string{
		{"type", "id", "summary", "content", "encrypted_content"}, {"id", "type", "summary", "content", "encrypted_content"},
		{"type", "summary", "content", "encrypted_content", "id"},
	}
)

// entry is an item of the history that replaces the older one.
func (x *restorer) entry(c *rebuild.Choices, entry *event.CompactionEntry, extras []rawjson.Member, i int) (jsontext.Value, error) {
	m := entry.Message
	own, _ := rawjson.Value(extras, strconv.Itoa(i))
	if m == nil {
		e, err := x.log.Event(x.ctx, x.session, entry.Seq)
		if err != nil {
			return nil, err
		}
		read, ok, err := event.Decode[event.Message](&e)
		if !ok || err != nil {
			return jsontext.Value("null"), err
		}
		m = &read
	}
	if own == nil {
		own = m.Extra
	}
	if len(m.Parts) == 1 && m.Parts[0].Type == event.OpaquePart {
		return m.Parts[0].Value, nil
	}
	members, _ := open(own)
	return x.item(c, "entry", m, members)
}

// item is the item of a message. kept are the members that did not become fields.
func (x *restorer) item(c *rebuild.Choices, name string, m *event.Message, kept []rawjson.Member) (jsontext.Value, error) {
	order := c.Order(name, itemOrders)
	join := func(members ...rawjson.Member) jsontext.Value {
		return rawjson.Object(rebuild.Join(order, kept, members...))
	}
	kind, _ := rawjson.Value(kept, "type")
	if text, _ := rawjson.Text(kind); text == agentMessage {
		content, err := x.content(c, "content", m.Role, m.Parts)
		return join(rebuild.Member("content", content)), err
	}
	if len(m.Parts) == 1 {
		p := &m.Parts[0]
		switch p.Type {
		case event.ReasoningPart:
			return reasoningItem(c, p, kept), nil
		case event.ToolCallPart, event.ServerToolCallPart:
			return callItem(c, p, kept, order), nil
		case event.ToolResultPart:
			return x.outputItem(c, p, kept, order)
		}
	}
	content, err := x.content(c, "content", m.Role, m.Parts)
	return join(rebuild.Text("type", "message"), rebuild.Text("role", string(m.Role)), rebuild.Member("content", content)), err
}

// callItem is the item of a call.
func callItem(c *rebuild.Choices, p *event.Part, kept []rawjson.Member, order []string) jsontext.Value {
	members := []rawjson.Member{rebuild.Text("id", p.ID)}
	if _, ok := rawjson.Value(kept, "type"); !ok {
		members = append(members, rebuild.Text("type", "function_call"))
	}
	isServer := p.Type == event.ServerToolCallPart
	if !isServer && !(p.CallID == p.ID && c.Is("without call_id")) {
		members = append(members, rebuild.Text("call_id", p.CallID))
	}
	kind, _ := rawjson.Value(kept, "type")
	name, _ := rawjson.Text(kind)
	if tool := strings.TrimSuffix(name, "_call"); !isServer && tool != p.Name || tool == "custom" || c.Is("name") {
		members = append(members, rebuild.Text("name", p.Name))
	}
	argument := "arguments"
	switch {
	case name == "custom_tool_call":
		argument = "input"
	case name != "" && name != "tool_search_call":
		argument = []string{"action", "input", "operation", "arguments"}[c.Of("argument", 4)]
	}
	value := p.Arguments
	if argument == "arguments" && value.Kind() != '"' && !c.Is("arguments are an object") {
		if c.Is("spaced arguments") {
			value = rebuild.Spaced(value)
		}
		value = rebuild.Quote(string(value))
	}
	if string(p.Arguments) == "{}" {
		switch c.Of("no arguments", 3) {
		case 1:
			value = jsontext.Value(`""`)
		case 2:
			value = nil
		}
	}
	return rawjson.Object(rebuild.Join(order, kept, append(members, rebuild.Member(argument, value))...))
}

// outputItem is the item of a result.
func (x *restorer) outputItem(c *rebuild.Choices, p *event.Part, kept []rawjson.Member, order []string) (jsontext.Value, error) {
	members := []rawjson.Member{rebuild.Text("id", p.ID), rebuild.Text("call_id", p.CallID)}
	kind, ok := rawjson.Value(kept, "type")
	if !ok {
		members = append(members, rebuild.Text("type", "function_call_output"))
	}
	name := "output"
	if text, _ := rawjson.Text(kind); text == "tool_search_output" {
		name = "tools"
	}
	var output jsontext.Value
	var err error
	switch {
	case len(p.Content) == 0:
		output = []jsontext.Value{jsontext.Value(`""`), jsontext.Value("[]"), jsontext.Value("null")}[c.Of("empty output", 3)]
	case len(p.Content) == 1 && p.Content[0].Type == event.OpaquePart && (name == "tools" || p.Content[0].Kind == "content"):
		output = p.Content[0].Value
	case len(p.Content) == 1 && !c.Is("output list") && p.Content[0].Type == event.TextPart && p.Content[0].Extra == nil:
		output = rebuild.Quote(p.Content[0].Text)
	default:
		output, err = x.content(c, "output", event.User, p.Content)
	}
	return rawjson.Object(rebuild.Join(order, kept, append(members, rebuild.Member(name, output))...)), err
}

// reasoningItem is the item of reasoning.
func reasoningItem(c *rebuild.Choices, p *event.Part, kept []rawjson.Member) jsontext.Value {
	members := []rawjson.Member{rebuild.Text("type", "reasoning"), rebuild.Text("id", p.ID), rebuild.Text("encrypted_content", p.Encrypted)}
	texts := func(kind string) jsontext.Value {
		return rawjson.Array([]jsontext.Value{rawjson.Object([]rawjson.Member{rebuild.Text("type", kind), rebuild.Member("text", rebuild.Quote(p.Text))})})
	}
	_, hasSummary := rawjson.Value(kept, "summary")
	_, hasContent := rawjson.Value(kept, "content")
	inContent := p.Text != "" && !hasSummary && !hasContent && c.Is("reasoning in content")
	if !hasSummary {
		summary := jsontext.Value("[]")
		if p.Text != "" && !inContent && !hasContent {
			summary = texts("summary_text")
		}
		members = append(members, rebuild.Member("summary", summary))
	}
	if !hasContent {
		empty := []jsontext.Value{nil, jsontext.Value("null"), jsontext.Value("[]")}[c.Of("no content", 3)]
		if inContent {
			empty = texts([]string{"reasoning_text", "text"}[c.Of("reasoning text", 2)])
		}
		members = append(members, rebuild.Member("content", empty))
	}
	if _, ok := rawjson.Value(kept, "encrypted_content"); !ok && p.Encrypted == "" && c.Is("encrypted") {
		members[2].Value = jsontext.Value(`""`)
	}
	return rawjson.Object(rebuild.Join(c.Order("reasoning", reasoningOrders), kept, members...))
}

// content are the blocks of a message or of a result.
func (x *restorer) content(c *rebuild.Choices, name string, role event.Role, parts []event.Part) (jsontext.Value, error) {
	if len(parts) == 1 && parts[0].Type == event.TextPart && parts[0].Extra == nil && c.Is(name+" text") {
		return rebuild.Quote(parts[0].Text), nil
	}
	blocks := make([]jsontext.Value, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		switch p.Type {
		case event.TextPart:
			kinds := []string{textType(role), "text", "input_text", "output_text"}
			kind := kinds[c.Of(name+" kind", len(kinds))]
			blocks = append(blocks, rebuild.Object(c.Order(name+" block", blockOrders), p.Extra, rebuild.Text("type", kind), rebuild.Member("text", rebuild.Quote(p.Text))))
		case event.ImagePart:
			address := p.URL
			if address == "" {
				body, err := x.body(p)
				if err != nil {
					return nil, err
				}
				address = "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(body)
			}
			blocks = append(blocks, rebuild.Object(c.Order("image", imageOrders), p.Extra, rebuild.Text("type", "input_image"), rebuild.Text("image_url", address)))
		default:
			blocks = append(blocks, p.Value)
		}
	}
	return rawjson.Array(blocks), nil
}
