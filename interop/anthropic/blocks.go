package anthropic

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
)

// The blocks of content.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	redactedThinking struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	toolUse struct {
		Type  string         `json:"type"`
		ID    string         `json:"id"`
		Name  string         `json:"name"`
		Input jsontext.Value `json:"input"`
	}
	toolResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   []any  `json:"content,omitempty"`
		IsError   bool   `json:"is_error,omitzero"`
	}
	serverResult struct {
		Type      string         `json:"type"`
		ToolUseID string         `json:"tool_use_id"`
		Content   jsontext.Value `json:"content"`
	}
	media struct {
		Type   string `json:"type"`
		Source source `json:"source"`
		Title  string `json:"title,omitzero"`
	}
	source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type,omitzero"`
		Data      string `json:"data,omitzero"`
		URL       string `json:"url,omitzero"`
	}
)

func newText(text string) textBlock { return textBlock{"text", text} }

// said renders what anybody may say: text, and where a body may stand images
// and documents. There are no blocks where nothing is said.
func (b *builder) said(p *event.Part, bodies bool) ([]any, error) {
	if bodies {
		if block, err := b.body(p); block != nil || err != nil {
			return []any{block}, err
		}
	}
	if text := render.Words(p); text != "" {
		return []any{newText(text)}, nil
	}
	return nil, nil
}

// body renders an image or a document; nil if the API takes no such.
func (b *builder) body(p *event.Part) (block any, err error) {
	if p.Type != event.ImagePart && p.Type != event.DocumentPart {
		return nil, nil
	}
	m, ok, err := render.Load(p, b.options.Blob)
	if !ok || err != nil {
		return nil, err
	}
	s, ok := sourceOf(&m, p.Type)
	if !ok {
		return nil, nil
	}
	if p.Type == event.ImagePart {
		return media{Type: "image", Source: s}, nil
	}
	return media{Type: "document", Source: s, Title: title(m.Name)}, nil
}

func sourceOf(m *render.Media, t event.PartType) (s source, ok bool) {
	switch {
	case m.URL != "":
		return source{Type: "url", URL: m.URL}, true
	case t == event.ImagePart:
		return source{Type: "base64", MediaType: m.Type, Data: m.Base64()}, m.IsImage()
	case m.Type == "application/pdf":
		return source{Type: "base64", MediaType: m.Type, Data: m.Base64()}, true
	case m.IsText():
		return source{Type: "text", MediaType: "text/plain", Data: string(m.Data)}, true
	default:
		return s, false
	}
}

// title cuts the name of a document to what the API takes.
func title(name string) string {
	if render.Blank(name) {
		return ""
	}
	if utf8.RuneCountInString(name) > maxTitle {
		return string([]rune(name)[:maxTitle])
	}
	return name
}

// reply takes in a message of the assistant.
func (b *builder) reply(m *event.Message) error {
	own := m.Provider == b.options.Provider
	signed := own && (b.options.Model == "" || b.options.Model == m.Model)
	var blocks []any
	var calls []call
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.ToolCallPart:
			made := call{p.CallID, b.ids.Next(p.CallID)}
			calls = append(calls, made)
			blocks = append(blocks, toolUse{"tool_use", made.id, render.Name(p.Name, maxName), render.Arguments(p.Arguments)})
		case event.ReasoningPart:
			if signed {
				blocks = append(blocks, thought(p)...)
			}
		case event.ServerToolCallPart, event.ServerToolResultPart, event.OpaquePart:
			if own {
				blocks = append(blocks, served(p)...)
			}
		default:
			said, err := b.said(p, false)
			if err != nil {
				return err
			}
			blocks = append(blocks, said...)
		}
	}
	if blocks = b.settled(blocks); len(blocks) > 0 {
		t := b.turn(event.Assistant)
		t.blocks, t.calls = append(t.blocks, blocks...), append(t.calls, calls...)
	}
	return nil
}

// thought renders thinking that its provider takes back.
func thought(p *event.Part) []any {
	switch {
	case p.Redacted && p.Encrypted != "":
		return []any{redactedThinking{"redacted_thinking", p.Encrypted}}
	case p.Signature != "":
		return []any{thinking{"thinking", p.Text, p.Signature}}
	default:
		return nil
	}
}

// withoutLastThoughts leaves out thinking that nothing follows.
func withoutLastThoughts(blocks []any) []any {
	for n := len(blocks); n > 0; n-- {
		switch blocks[n-1].(type) {
		case thinking, redactedThinking:
			blocks = blocks[:n-1]
		default:
			return blocks
		}
	}
	return blocks
}
