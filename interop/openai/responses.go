package openai

import (
	"cmp"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/projection"
)

// Responses renders a history as {"input": [...]} for the Responses API. It works
// like Chat, with two differences. Encrypted reasoning is rendered for its own model,
// if another item follows it. Results can hold images and documents. At most one
// Options is used.
func Responses(history []projection.Entry, opts ...Options) (jsontext.Value, error) {
	return render.Value(history, func(w io.Writer, all iter.Seq2[projection.Entry, error]) error {
		return WriteResponses(w, all, opts...)
	})
}

// WriteResponses writes the request of Responses item by item, as WriteChat does.
func WriteResponses(w io.Writer, history iter.Seq2[projection.Entry, error], opts ...Options) error {
	r := responses{items: render.NewArray(w, `{"input":[`), calls: newCalls(modelapi.MaxResponsesID)}
	if len(opts) > 0 {
		r.options = opts[0]
	}
	r.options.Provider = cmp.Or(r.options.Provider, modelapi.OpenAI)
	if err := render.Each(history, r.add); err != nil {
		return err
	}
	r.flushResults()
	return r.items.End()
}

// The items of the API, and the parts of their content.
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

// responses writes the items of a request one after the other.
type responses struct {
	options Options
	items   render.Array
	calls   calls
}

// add adds the next message of the history.
func (r *responses) add(m *event.Message) error {
	if m.Role == event.Assistant {
		r.addAssistant(m)
		return r.items.Err()
	}
	role, parts, err := renderOther(m, r)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		r.flushResults()
		r.items.Add(messageItem{"message", role, parts})
	}
	return r.items.Err()
}

// addAssistant adds a message of the assistant. Text between calls becomes a separate
// message.
func (r *responses) addAssistant(m *event.Message) {
	own := m.Provider == r.options.Provider && (r.options.Model == "" || r.options.Model == m.Model)
	var items, texts []any
	var open []call
	flush := func() {
		if len(texts) > 0 {
			items, texts = append(items, messageItem{"message", event.Assistant, texts}), nil
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch text := render.Words(p); {
		case p.Type == event.ToolCallPart:
			flush()
			tc := r.calls.next(p)
			open = append(open, tc)
			items = append(items, callItem{"function_call", tc.id, tc.name, tc.arguments})
		case p.Type == event.ReasoningPart && own && p.Encrypted != "":
			flush()
			items = append(items, reasoningOf(p))
		case text != "":
			texts = append(texts, textPart{"output_text", text})
		}
	}
	flush()
	if items = trimReasoning(items); len(items) > 0 {
		r.flushResults()
		for _, item := range items {
			r.items.Add(item)
		}
		r.calls.open = open
	}
}

func reasoningOf(p *event.Part) reasoningItem {
	item := reasoningItem{Type: "reasoning", Summary: []textPart{}, Encrypted: p.Encrypted}
	if !modelapi.Blank(p.Text) {
		item.Summary = append(item.Summary, textPart{"summary_text", p.Text})
	}
	return item
}

// trimReasoning removes reasoning from the end of a message.
func trimReasoning(items []any) []any {
	for n := len(items); n > 0; n-- {
		if _, reasoning := items[n-1].(reasoningItem); !reasoning {
			break
		}
		items = items[:n-1]
	}
	return items
}

// addResult adds a result if its call is open.
func (r *responses) addResult(p *event.Part) error {
	open := r.calls.openCall(p.CallID)
	if open == nil {
		return nil
	}
	parts, err := renderAll(p.Content, func(p *event.Part) (any, error) { return r.part(p, true) })
	if err != nil {
		return err
	}
	open.result = outputItem{"function_call_output", open.id, output(parts)}
	return nil
}

// output returns the output of a call: one text, or the parts if one is not a text.
func output(parts []any) any {
	if len(parts) == 0 {
		return ""
	}
	return content(parts)
}

// flushResults writes the results of the open calls.
func (r *responses) flushResults() {
	for _, o := range r.calls.open {
		if o.result == nil {
			o.result = outputItem{"function_call_output", o.id, missingResult}
		}
		r.items.Add(o.result)
	}
	r.calls.open = nil
}

// part renders a text part. With bodies, it renders images and documents too. It
// returns nil for a part without content.
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

// body renders an image or a document; nil if the API does not accept it.
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
