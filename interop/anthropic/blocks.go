package anthropic

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
)

// The content blocks of the API.
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

// content renders a text part. With bodies, it renders images and documents too. It
// returns no blocks for a part without content.
func (b *builder) content(p *event.Part, bodies bool) ([]any, error) {
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

// body renders an image or a document; nil if the API does not accept it.
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

// title truncates the name of a document to the limit of the API.
func title(name string) string {
	if modelapi.Blank(name) {
		return ""
	}
	if utf8.RuneCountInString(name) > maxTitle {
		return string([]rune(name)[:maxTitle])
	}
	return name
}

// addAssistant adds a message of the assistant.
func (b *builder) addAssistant(m *event.Message) error {
	own := m.Provider == b.options.Provider
	signed := own && (b.options.Model == "" || b.options.Model == m.Model)
	var blocks []any
	var calls []call
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.ToolCallPart:
			c := call{p.CallID, b.ids.Next(p.CallID)}
			calls = append(calls, c)
			blocks = append(blocks, toolUse{"tool_use", c.id, modelapi.AnthropicToolName(p.Name), render.Arguments(p.Arguments)})
		case event.ReasoningPart:
			if signed {
				blocks = append(blocks, thinkingBlock(p)...)
			}
		case event.ServerToolCallPart, event.ServerToolResultPart, event.OpaquePart:
			if own {
				blocks = append(blocks, serverBlocks(p)...)
			}
		default:
			content, err := b.content(p, false)
			if err != nil {
				return err
			}
			blocks = append(blocks, content...)
		}
	}
	if blocks = b.dropUnpaired(blocks); len(blocks) > 0 {
		t := b.turn(event.Assistant)
		t.blocks, t.calls = append(t.blocks, blocks...), append(t.calls, calls...)
	}
	return nil
}

// thinkingBlock renders thinking that the provider accepts back.
func thinkingBlock(p *event.Part) []any {
	switch {
	case p.Redacted && p.Encrypted != "":
		return []any{redactedThinking{"redacted_thinking", p.Encrypted}}
	case p.Signature != "":
		return []any{thinking{"thinking", p.Text, p.Signature}}
	default:
		return nil
	}
}

// trimThinking removes thinking from the end of a message.
func trimThinking(blocks []any) []any {
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
