// Package openai renders the history of a session as a request for OpenAI's Chat
// Completions or Responses API, and parses answers. A tool's name keeps letters, digits, "_"
// and "-"; any other name gets a hash, because the API does not accept it.
//
//	history, err := projection.Load(ctx, log, "order-42", projection.History())
//	messages, err := history.State.Messages()
//	request, err := openai.Chat(messages)
package openai

import (
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

// Options configure Chat and Responses. The zero value is ready for use.
type Options struct {
	// Provider and Model are the receiver of the request; defaults are "openai" and
	// any model. Responses renders encrypted reasoning only if it came from this
	// provider and model. Chat renders no reasoning.
	Provider string
	Model    string
	// Blob returns the body of an image, a sound or a document. Without it, a line
	// of text replaces the body.
	Blob func(event.BlobRef) ([]byte, error)
}

// Chat renders a history as {"messages": [...]} for Chat Completions. At most one
// Options is used.
//
// Each message keeps its role. Results become tool messages. Tool messages cannot
// hold images, so the images follow in a user message.
//
// The API has no place for some content, and Chat leaves it out: empty text,
// reasoning, the provider's own tools, and messages without remaining content. A call
// without a result in the tool messages after it gets a result that says so. A result
// without a call is left out. A history from package projection has neither case.
//
// Equal histories give equal bytes. If all calls of a history have results, its
// messages are a prefix of the messages of every longer history. Chat returns errors
// of Blob.
func Chat(history []projection.Entry, opts ...Options) (jsontext.Value, error) {
	return render.Value(history, func(w io.Writer, all iter.Seq2[projection.Entry, error]) error {
		return WriteChat(w, all, opts...)
	})
}

// WriteChat writes the request of Chat message by message, without a newline. It holds
// one message and the results of its calls. It returns errors of w, of the history and of
// Blob; what it wrote before an error is no complete request.
func WriteChat(w io.Writer, history iter.Seq2[projection.Entry, error], opts ...Options) error {
	c := chat{messages: render.NewArray(w, `{"messages":[`), calls: newCalls(modelapi.MaxChatID)}
	if len(opts) > 0 {
		c.options = opts[0]
	}
	if err := render.Each(history, c.add); err != nil {
		return err
	}
	c.flushResults()
	return c.messages.End()
}

// The messages of the API.
type (
	chatMessage struct {
		Role    event.Role `json:"role"`
		Content any        `json:"content"` // a string, or parts
	}
	assistantMessage struct {
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

// chat writes the messages of a request one after the other.
type chat struct {
	options  Options
	messages render.Array
	calls    calls
	// media are the images, sounds and documents in the results of the open calls.
	media []any
}

// add adds the next message of the history.
func (c *chat) add(m *event.Message) error {
	if m.Role == event.Assistant {
		c.addAssistant(m)
		return c.messages.Err()
	}
	role, parts, err := renderOther(m, c)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		c.flushResults()
		c.messages.Add(chatMessage{role, content(parts)})
	}
	return c.messages.Err()
}

// addAssistant adds a message of the assistant.
func (c *chat) addAssistant(m *event.Message) {
	r := assistantMessage{Role: event.Assistant}
	var next []call
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == event.ToolCallPart {
			tc := c.calls.next(p)
			next = append(next, tc)
			r.Calls = append(r.Calls, toolCall{tc.id, "function", function{tc.name, tc.arguments}})
		} else if text := render.Words(p); text != "" {
			r.Content = joinText(r.Content, text)
		}
	}
	if r.Content == nil && len(r.Calls) == 0 {
		return
	}
	c.flushResults()
	c.messages.Add(r)
	c.calls.open = next
}

func joinText(before *string, text string) *string {
	if before != nil {
		text = *before + "\n" + text
	}
	return &text
}

// addResult adds a result if its call is open.
func (c *chat) addResult(p *event.Part) error {
	open := c.calls.openCall(p.CallID)
	if open == nil {
		return nil
	}
	var text *string
	for i := range p.Content {
		part, err := c.part(&p.Content[i], true)
		if err != nil {
			return err
		}
		if t, ok := part.(textPart); ok {
			text = joinText(text, t.Text)
		} else if part != nil {
			text = joinText(text, render.Placeholder(&p.Content[i]))
			c.media = append(c.media, part)
		}
	}
	if text == nil {
		text = new(string)
	}
	open.result = result{event.Tool, open.id, *text}
	return nil
}

// flushResults writes the results of the open calls, and then their media.
func (c *chat) flushResults() {
	for _, o := range c.calls.open {
		if o.result == nil {
			o.result = result{event.Tool, o.id, missingResult}
		}
		c.messages.Add(o.result)
	}
	if len(c.media) > 0 {
		c.messages.Add(chatMessage{event.User, append([]any{newText(toolMedia)}, c.media...)})
	}
	c.calls.open, c.media = nil, nil
}
