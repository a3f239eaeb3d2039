// Package openai renders the history of a session in the shapes of OpenAI's
// APIs, Chat Completions and Responses, and checks requests of these shapes.
package openai

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

// Provider is the name of the provider in messages of the log.
const Provider = "openai"

// Options configure Chat and Responses. The zero value is ready for use.
type Options struct {
	// Provider and Model are those the request goes to. Reasoning is rendered,
	// where the shape has a place for it and its message came from there, and is
	// left out elsewhere. An empty Provider is "openai", an empty Model any of its
	// models.
	Provider string
	Model    string
	// Blob gets the body of an image, a sound or a document. Without it, a line
	// of text stands where the body would.
	Blob func(event.BlobRef) ([]byte, error)
}

// What the APIs allow.
const (
	maxChatID = 40
	maxName   = 64
)

// Chat renders a history as {"messages": [...]} of Chat Completions.
//
// Each message keeps its role. Results are messages of the tool, which have no
// place for images: those follow as a message of the user. What the shape has no
// place for is left out: empty text, reasoning, the provider's own tools, a
// message with nothing left. A call that the messages of the tool behind it do
// not answer gets a result that says so, and a result without its call is left
// out; a history as projection gives it has neither.
//
// Equal histories give equal bytes. Where all calls of a history have results,
// its messages are the first ones of the rendering of every longer one. An error
// is one of Blob.
func Chat(history []projection.Entry, opts ...Options) (jsontext.Value, error) {
	c := chat{messages: []any{}, calls: newCalls(maxChatID)}
	if len(opts) > 0 {
		c.options = opts[0]
	}
	for i := range history {
		if err := c.add(&history[i].Message); err != nil {
			return nil, fmt.Errorf("render event %d: %w", history[i].Seq, err)
		}
	}
	c.answered()
	return json.Marshal(struct {
		Messages []any `json:"messages"`
	}{c.messages}, jsontext.PreserveRawStrings(true))
}

// The messages.
type (
	said struct {
		Role    event.Role `json:"role"`
		Content any        `json:"content"` // a string, or parts
	}
	replied struct {
		Role    event.Role `json:"role"`
		Content *string    `json:"content"`
		Calls   []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	result struct {
		Role       event.Role `json:"role"`
		ToolCallID string     `json:"tool_call_id"`
		Content    string     `json:"content"`
	}
)

// chat makes the messages of a request one after the other.
type chat struct {
	options  Options
	messages []any
	calls    calls
	// shown are the bodies in the results of the open calls.
	shown []any
}

// add takes in the next message of the history.
func (c *chat) add(m *event.Message) error {
	if m.Role == event.Assistant {
		c.reply(m)
		return nil
	}
	role, parts, err := rest(m, c)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		c.answered()
		c.messages = append(c.messages, said{role, content(parts)})
	}
	return nil
}

// reply takes in a message of the assistant.
func (c *chat) reply(m *event.Message) {
	r := replied{Role: event.Assistant}
	var next []call
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == event.ToolCallPart {
			made := c.calls.next(p)
			next = append(next, made)
			r.Calls = append(r.Calls, toolCall{made.id, "function", function{made.name, made.arguments}})
		} else if text := render.Words(p); text != "" {
			r.Content = joined(r.Content, text)
		}
	}
	if r.Content == nil && len(r.Calls) == 0 {
		return
	}
	c.answered()
	c.messages = append(c.messages, r)
	c.calls.open = next
}

func joined(before *string, text string) *string {
	if before != nil {
		text = *before + "\n" + text
	}
	return &text
}

// answer takes in a result, if its call waits for it.
func (c *chat) answer(p *event.Part) error {
	waits := c.calls.waiting(p.CallID)
	if waits == nil {
		return nil
	}
	var text *string
	for i := range p.Content {
		part, err := c.part(&p.Content[i], true)
		if err != nil {
			return err
		}
		if t, ok := part.(textPart); ok {
			text = joined(text, t.Text)
		} else if part != nil {
			text = joined(text, render.Placeholder(&p.Content[i]))
			c.shown = append(c.shown, part)
		}
	}
	if text == nil {
		text = new(string)
	}
	waits.result = result{event.Tool, waits.id, *text}
	return nil
}

// answered appends the results of the open calls, before another message.
func (c *chat) answered() {
	for _, o := range c.calls.open {
		if o.result == nil {
			o.result = result{event.Tool, o.id, unanswered}
		}
		c.messages = append(c.messages, o.result)
	}
	if len(c.shown) > 0 {
		c.messages = append(c.messages, said{event.User, append([]any{newText(showing)}, c.shown...)})
	}
	c.calls.open, c.shown = nil, nil
}
