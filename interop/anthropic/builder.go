package anthropic

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
)

// maxTitle is the longest title of a document, in runes.
const maxTitle = 500

// Texts for missing parts of the conversation.
const (
	missingResult = "[No result: the call was interrupted.]"
	missingStart  = "[The conversation begins with the assistant.]"
)

// builder writes the messages of a request one after the other.
type builder struct {
	w        io.Writer
	options  Options
	ids      render.CallIDs
	system   []any
	messages *render.Array // the turns that are written; nil before the first one
	// turns are the turns that are not written: the last two, which can change.
	turns []turn
}

// turn is a message under construction.
type turn struct {
	role event.Role
	// placeholder marks the user turn that is added when the assistant comes first.
	placeholder bool
	blocks      []any
	// calls are the calls of an assistant turn, in order.
	calls []call
	// results are the results in a user turn, one for each call of the turn before.
	results []any
}

// call is a call that has no result yet.
type call struct{ logID, id string }

func (t *turn) message() message {
	return message{t.role, append(append([]any{}, t.results...), t.blocks...)}
}

// add adds the next message of the history.
func (b *builder) add(m *event.Message) error {
	if b.messages != nil && b.messages.Err() != nil {
		return b.messages.Err()
	}
	switch {
	case m.Role == event.Assistant:
		return b.addAssistant(m)
	case m.Role != event.User && m.Role != event.Tool && len(b.turns) == 0:
		return b.addSystem(m)
	default:
		return b.addUser(m)
	}
}

// addSystem adds a system or developer message from the start of the history.
func (b *builder) addSystem(m *event.Message) error {
	for i := range m.Parts {
		blocks, err := b.content(&m.Parts[i], false)
		if err != nil {
			return err
		}
		b.system = append(b.system, blocks...)
	}
	return nil
}

// addUser adds any other message that is not from the assistant.
func (b *builder) addUser(m *event.Message) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == event.ToolResultPart {
			if err := b.addResult(p); err != nil {
				return err
			}
			continue
		}
		blocks, err := b.content(p, true)
		if err != nil {
			return err
		}
		if len(blocks) > 0 {
			t := b.turn(event.User)
			t.blocks = append(t.blocks, blocks...)
		}
	}
	return nil
}

// addResult adds a result if its call is open.
func (b *builder) addResult(p *event.Part) error {
	calling, i := b.openCall(p.CallID)
	if calling == nil {
		return nil
	}
	r := toolResult{Type: "tool_result", ToolUseID: calling.calls[i].id, IsError: p.IsError}
	for k := range p.Content {
		blocks, err := b.content(&p.Content[k], true)
		if err != nil {
			return err
		}
		r.Content = append(r.Content, blocks...)
	}
	t := b.turn(event.User)
	t.results[i] = r
	return nil
}

// openCall finds the first call with an id and without a result. The call is in the
// last assistant turn, which is the last turn or the one before it.
func (b *builder) openCall(id string) (calling *turn, i int) {
	n := len(b.turns)
	if n == 0 {
		return nil, 0
	}
	var results []any
	if calling = &b.turns[n-1]; calling.role == event.User && n > 1 {
		results = calling.results
		calling = &b.turns[n-2]
	}
	for i := range calling.calls {
		if calling.calls[i].logID == id && (results == nil || results[i] == nil) {
			return calling, i
		}
	}
	return nil, 0
}

// turn returns the last turn if it has the role, or starts a new one. Starting a turn
// ends the one before, and removes it if it is empty.
func (b *builder) turn(role event.Role) *turn {
	if n := len(b.turns); n > 0 && b.turns[n-1].role != role {
		b.endTurn()
	}
	n := len(b.turns)
	if n > 0 && b.turns[n-1].role == role {
		return &b.turns[n-1]
	}
	if n == 0 && role == event.Assistant {
		b.turns = append(b.turns, turn{role: event.User, placeholder: true, blocks: []any{newText(missingStart)}})
	}
	next := turn{role: role}
	if n > 0 {
		next.results = make([]any, len(b.turns[n-1].calls))
	}
	b.turns = append(b.turns, next)
	if len(b.turns) > 2 {
		b.write()
	}
	return &b.turns[len(b.turns)-1]
}

// endTurn ends the last turn. Calls without a result get one that says so. An
// assistant turn loses trailing thinking, and is removed if nothing remains.
func (b *builder) endTurn() {
	n := len(b.turns)
	if n == 0 {
		return
	}
	t := &b.turns[n-1]
	if t.role == event.User {
		b.completeResults(n - 1)
		return
	}
	if t.blocks = trimThinking(t.blocks); len(t.blocks) > 0 {
		return
	}
	b.turns = b.turns[:n-1]
	if n == 2 && b.turns[0].placeholder {
		b.turns = nil
	}
}

// completeResults adds the missing results of turn n.
func (b *builder) completeResults(n int) {
	for i, r := range b.turns[n].results {
		if r == nil {
			b.turns[n].results[i] = toolResult{
				Type: "tool_result", ToolUseID: b.turns[n-1].calls[i].id, Content: []any{newText(missingResult)}, IsError: true,
			}
		}
	}
}

// write writes the first of the turns.
func (b *builder) write() {
	if b.messages == nil {
		b.begin()
	}
	b.messages.Add(b.turns[0].message())
	b.turns = append(b.turns[:0], b.turns[1:]...)
}

// begin writes the request up to the messages.
func (b *builder) begin() {
	head, err := `{"messages":[`, error(nil)
	if len(b.system) > 0 {
		var system jsontext.Value
		system, err = json.Marshal(b.system, jsontext.PreserveRawStrings(true))
		head = `{"system":` + string(system) + `,"messages":[`
	}
	messages := render.NewArray(b.w, head)
	messages.Fail(err)
	b.messages = &messages
}

// finish ends the last turn, and the request.
func (b *builder) finish() error {
	if n := len(b.turns); n > 0 && len(b.turns[n-1].calls) > 0 {
		b.turn(event.User)
	}
	b.endTurn()
	for len(b.turns) > 0 {
		b.write()
	}
	if b.messages == nil {
		b.begin()
	}
	return b.messages.End()
}
