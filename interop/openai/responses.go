package openai

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

const maxResponsesID = 64

// Responses renders a history as {"input": [...]} of the Responses API. It does
// as Chat, but for this: encrypted reasoning goes back to the model that it came
// from, unless nothing follows it, and results hold images and documents.
func Responses(history []projection.Entry, opts ...Options) (jsontext.Value, error) {
	r := responses{items: []any{}, calls: newCalls(maxResponsesID)}
	if len(opts) > 0 {
		r.options = opts[0]
	}
	r.options.Provider = cmp.Or(r.options.Provider, Provider)
	for i := range history {
		if err := r.add(&history[i].Message); err != nil {
			return nil, fmt.Errorf("render event %d: %w", history[i].Seq, err)
		}
	}
	r.answered()
	return json.Marshal(struct {
		Input []any `json:"input"`
	}{r.items}, jsontext.PreserveRawStrings(true))
}

// The items, and the parts of what they say.
type (
	messageItem struct {
		Type    string     `json:"type"`
		Role    event.Role `json:"role"`
		Content []any      `json:"content"`
	}
	callItem struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	outputItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output any    `json:"output"` // a string, or parts
	}
	reasoningItem struct {
		Type      string     `json:"type"`
		Summary   []textPart `json:"summary"`
		Encrypted string     `json:"encrypted_content"`
	}
	inputImage struct {
		Type string `json:"type"`
		URL  string `json:"image_url"`
	}
	inputFile struct {
		Type string `json:"type"`
		Name string `json:"filename,omitzero"`
		Data string `json:"file_data,omitzero"`
		URL  string `json:"file_url,omitzero"`
	}
)

// responses makes the items of a request one after the other.
type responses struct {
	options Options
	items   []any
	calls   calls
}

// add takes in the next message of the history.
func (r *responses) add(m *event.Message) error {
	if m.Role == event.Assistant {
		r.reply(m)
		return nil
	}
	role, parts, err := rest(m, r)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		r.answered()
		r.items = append(r.items, messageItem{"message", role, parts})
	}
	return nil
}

// reply takes in a message of the assistant: text between calls is a message
// of its own.
func (r *responses) reply(m *event.Message) {
	own := m.Provider == r.options.Provider && (r.options.Model == "" || r.options.Model == m.Model)
	var items, said []any
	var open []call
	flush := func() {
		if len(said) > 0 {
			items, said = append(items, messageItem{"message", event.Assistant, said}), nil
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch text := render.Words(p); {
		case p.Type == event.ToolCallPart:
			flush()
			made := r.calls.next(p)
			open = append(open, made)
			items = append(items, callItem{"function_call", made.id, made.name, made.arguments})
		case p.Type == event.ReasoningPart && own && p.Encrypted != "":
			flush()
			items = append(items, reasoned(p))
		case text != "":
			said = append(said, textPart{"output_text", text})
		}
	}
	flush()
	if items = followed(items); len(items) > 0 {
		r.answered()
		r.items, r.calls.open = append(r.items, items...), open
	}
}

func reasoned(p *event.Part) reasoningItem {
	item := reasoningItem{Type: "reasoning", Summary: []textPart{}, Encrypted: p.Encrypted}
	if !render.Blank(p.Text) {
		item.Summary = append(item.Summary, textPart{"summary_text", p.Text})
	}
	return item
}

// followed leaves out reasoning that nothing follows.
func followed(items []any) []any {
	for n := len(items); n > 0; n-- {
		if _, reasoning := items[n-1].(reasoningItem); !reasoning {
			break
		}
		items = items[:n-1]
	}
	return items
}

// answer takes in a result, if its call waits for it.
func (r *responses) answer(p *event.Part) error {
	waits := r.calls.waiting(p.CallID)
	if waits == nil {
		return nil
	}
	parts, err := rendered(p.Content, func(p *event.Part) (any, error) { return r.part(p, true) })
	if err != nil {
		return err
	}
	waits.result = outputItem{"function_call_output", waits.id, output(parts)}
	return nil
}

// output is one text where nothing else is said, else the parts.
func output(parts []any) any {
	if len(parts) == 0 {
		return ""
	}
	return content(parts)
}

// answered appends the results of the open calls, before another message.
func (r *responses) answered() {
	for _, o := range r.calls.open {
		if o.result == nil {
			o.result = outputItem{"function_call_output", o.id, unanswered}
		}
		r.items = append(r.items, o.result)
	}
	r.calls.open = nil
}

// part renders what anybody may say: text, and where a body may stand images
// and documents; nil where nothing is said.
func (r *responses) part(p *event.Part, bodies bool) (any, error) {
	if bodies && render.HasBody(p) {
		if part, err := r.body(p); part != nil || err != nil {
			return part, err
		}
	}
	if text := render.Words(p); text != "" {
		return textPart{"input_text", text}, nil
	}
	return nil, nil
}

// body renders an image or a document; nil if the API takes no such.
func (r *responses) body(p *event.Part) (any, error) {
	m, ok, err := render.Load(p, r.options.Blob)
	if !ok || err != nil {
		return nil, err
	}
	switch {
	case p.Type == event.ImagePart && m.IsImage():
		return inputImage{"input_image", m.Address()}, nil
	case p.Type != event.DocumentPart:
		return nil, nil
	case m.URL != "":
		return inputFile{Type: "input_file", URL: m.URL}, nil
	case m.Type == "application/pdf":
		return inputFile{Type: "input_file", Name: m.FileName(), Data: m.Address()}, nil
	case m.IsText():
		return textPart{"input_text", render.Placeholder(p) + "\n" + string(m.Data)}, nil
	}
	return nil, nil
}
