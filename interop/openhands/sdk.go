package openhands

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

// sdkItem converts an event of the software agent SDK.
func (b *builder) sdkItem(rec *records.Record, o *parts.Members) document.Item {
	it := document.Item{Rec: *rec, At: document.Time(o.Text("timestamp")), Kind: o.Text("kind")}
	id := o.Text("id")
	if o.Failed {
		return document.Raw(*rec, "event")
	}
	if id != "" {
		it.Name = itemName(id)
	}
	if it.Kind == "Condensation" && it.Name != "" {
		setSDKCondensation(&it, o)
		return it
	}
	m := b.sdkEvent(it.Kind, o)
	if o.Failed || m.Role == "" {
		return it
	}
	if source := o.PeekText("source"); m.Role == event.User {
		it.Context = source != "" && source != "user" || o.PeekText("sender") != ""
	}
	m.Extra = o.Rest()
	it.Payload = m
	return it
}

// sdkEvent converts an event of a kind to a message. The message has no role if the event
// stays raw.
func (b *builder) sdkEvent(kind string, o *parts.Members) (m event.Message) {
	switch kind {
	case "SystemPromptEvent":
		m = systemMessage(o)
	case "MessageEvent":
		m = b.sdkMessage(o)
	case "ActionEvent":
		m = b.callMessage(o)
	case "ObservationEvent":
		m = observationMessage(o)
	case "AgentErrorEvent":
		m = errorMessage(o, o.Text("error"))
	case "UserRejectObservation":
		m = errorMessage(o, o.Text("rejection_reason"))
	case "ConversationStateUpdateEvent":
		b.addStats(o)
	}
	return m
}

// systemMessage converts the system prompt.
func systemMessage(o *parts.Members) event.Message {
	m := event.Message{Role: event.System}
	for _, name := range []string{"system_prompt", "dynamic_context"} {
		if v := o.Peek(name); v.Kind() == '{' {
			o.Take(name)
			m.Parts = append(m.Parts, block(v)...)
		}
	}
	return m
}

// sdkMessage converts a message of the user, the model or the system.
func (b *builder) sdkMessage(o *parts.Members) (m event.Message) {
	message, err := parts.Open(o.Take("llm_message"))
	if err != nil {
		return m
	}
	m.Role = event.Role(message.Text("role"))
	if m.Role != event.User && m.Role != event.Assistant && m.Role != event.System {
		return event.Message{}
	}
	thoughts := reasoning(&message)
	m.Parts = content(message.Take("content"))
	if m.Role == event.Assistant {
		b.setResponse(&m, o)
		m.Parts = append(thoughts, m.Parts...)
	}
	m.Parts = append(m.Parts, content(o.Take("extended_content"))...)
	for _, name := range []string{"tool_calls", "tool_call_id", "name"} {
		if message.Peek(name).Kind() == 'n' {
			message.Take(name)
		}
	}
	o.Put("llm_message", message.Rest())
	return m
}

// setResponse sets the model, group and usage of a message, from its response.
func (b *builder) setResponse(m *event.Message, o *parts.Members) {
	m.Role, m.Model = event.Assistant, b.model
	m.Group = o.Maybe("llm_response_id")
	m.ResponseID = m.Group
	if first := !b.responses[m.Group]; first && m.Group != "" {
		b.responses[m.Group] = true
		m.Usage = b.usages[m.Group]
	}
}

// callMessage converts a call, with the reasoning and text before it.
func (b *builder) callMessage(o *parts.Members) (m event.Message) {
	b.setResponse(&m, o)
	thoughts := reasoning(o)
	m.Parts = append(thoughts, content(o.Take("thought"))...)
	id, name := o.Text("tool_call_id"), o.Text("tool_name")
	c, err := parts.Open(o.Take("tool_call"))
	if err != nil || id == "" || name == "" {
		o.Failed = true
		return m
	}
	if f, err := parts.Open(c.Peek("function")); err == nil { // the layout of older versions
		c.Take("function")
		c.Put("arguments", f.Take("arguments"))
	}
	p := event.ToolCall(id, name, nil)
	if v := c.Take("arguments"); v != nil {
		p.Arguments = parts.Arguments(v)
	}
	for member, known := range map[string]string{"id": id, "name": name} {
		if c.PeekText(member) == known {
			c.Take(member)
		}
	}
	p.Extra = c.Rest()
	m.Parts = append(m.Parts, p)
	return m
}

// reasoning converts the reasoning: Anthropic's blocks, an item of OpenAI, or else a
// text.
func reasoning(o *parts.Members) (all []event.Part) {
	if blocks, err := rawjson.Elements(o.Peek("thinking_blocks")); err == nil {
		o.Take("thinking_blocks")
		for _, v := range blocks {
			all = append(all, block(v)...)
		}
	}
	if item, err := parts.Open(o.Peek("responses_reasoning_item")); err == nil {
		o.Take("responses_reasoning_item")
		all = append(all, reasoningItem(&item))
	}
	text := o.PeekText("reasoning_content")
	if len(all) == 0 && text != "" {
		all = append(all, event.Reasoning(text, ""))
	}
	if len(all) == 1 && (all[0].Text == text || text == "") {
		o.Take("reasoning_content")
	}
	return all
}

// reasoningItem converts a reasoning item with lists of texts.
func reasoningItem(item *parts.Members) event.Part {
	p := event.Part{Type: event.ReasoningPart, ID: item.Maybe("id"), Encrypted: item.Maybe("encrypted_content")}
	var texts []string
	for _, name := range []string{"summary", "content"} {
		var more []string
		if v := item.Peek(name); v != nil && json.Unmarshal(v, &more) == nil {
			item.Take(name)
			texts = append(texts, more...)
		}
	}
	p.Text = strings.Join(texts, "\n\n")
	p.Extra = item.Rest()
	return p
}

// content converts a text, or a list of texts and images.
func content(v jsontext.Value) (all []event.Part) {
	blocks, err := rawjson.Elements(v)
	if text, ok := rawjson.Text(v); ok && text != "" {
		return []event.Part{event.Text(text)}
	}
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		all = append(all, block(b)...)
	}
	return all
}

// block converts a text, reasoning or images.
func block(v jsontext.Value) (all []event.Part) {
	o, err := parts.Open(v)
	var addresses []string
	if err == nil && o.PeekText("type") == "image" && json.Unmarshal(o.Peek("image_urls"), &addresses) == nil {
		for _, address := range addresses {
			if p := parts.FromURL(event.ImagePart, address); p.Type != "" {
				all = append(all, p)
			}
		}
		return all
	}
	if err == nil && o.Peek("cache_prompt").Kind() == 'f' {
		o.Take("cache_prompt")
		v = o.Rest()
	}
	p, _ := (&parts.Reader{}).Block(v) // a Reader without Put returns no error
	return []event.Part{p}
}

// observationMessage converts the result of a call.
func observationMessage(o *parts.Members) event.Message {
	p := result(o)
	seen, err := parts.Open(o.Take("observation"))
	if err != nil {
		o.Failed = true
		return event.Message{}
	}
	metadata, _ := parts.Open(seen.Peek("metadata")) // empty if it is no object
	p.IsError = seen.Peek("is_error").Kind() == 't' || isFailure(seen.Peek("exit_code")) || isFailure(metadata.Peek("exit_code"))
	for _, name := range []string{"content", "output", "result", "message", "error"} {
		if v := seen.Peek(name); len(p.Content) == 0 && v != nil {
			if p.Content = content(v); len(p.Content) > 0 {
				seen.Take(name)
			}
		}
	}
	p.Extra = seen.Rest()
	p.Content = append(p.Content, content(o.Take("extended_content"))...)
	return event.Message{Role: event.Tool, Parts: []event.Part{p}}
}

// errorMessage converts a call that failed or was rejected.
func errorMessage(o *parts.Members, reason string) event.Message {
	p := result(o)
	p.IsError = true
	if reason != "" {
		p.Content = []event.Part{event.Text(reason)}
	}
	return event.Message{Role: event.Tool, Parts: []event.Part{p}}
}

// result returns an empty result for the call of an event.
func result(o *parts.Members) event.Part {
	return event.ToolResult(o.Required("tool_call_id"), o.Text("tool_name"))
}

// stats are the metrics of a conversation, by the use of the model.
type stats struct {
	All map[string]metrics `json:"usage_to_metrics"`
}

// statsIn parses the stats of a state; nil if there are none.
func statsIn(state jsontext.Value) *stats {
	var s stats
	if inner, err := parts.Open(state); err == nil && inner.Has("stats") {
		state = inner.Peek("stats")
	}
	if state.Kind() != '{' || json.Unmarshal(state, &s) != nil || len(s.All) == 0 {
		return nil
	}
	return &s
}

// sum is the sum of tokens and cost.
func (s *stats) sum() (sum document.Totals) {
	for _, m := range s.All {
		sum.Usage, sum.Cost = sum.Usage.Add(m.Total.usage()), sum.Cost.Add(m.cost())
	}
	return sum
}

// addStats takes the sum of tokens and cost from the value of an event.
func (b *builder) addStats(o *parts.Members) {
	if s := statsIn(o.Peek("value")); s != nil {
		b.stats = s.sum()
	}
}
