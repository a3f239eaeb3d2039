package anthropic

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
)

// What the API allows.
const (
	maxID    = 64
	maxName  = 128
	maxTitle = 500
)

// Texts that stand where the log has nothing.
const (
	unanswered = "[No result: the call was interrupted.]"
	unbegun    = "[The conversation begins with the assistant.]"
)

// builder makes the messages of a request one after the other.
type builder struct {
	options Options
	ids     render.CallIDs
	system  []any
	turns   []turn
}

// turn is a message in the making.
type turn struct {
	role event.Role
	// made: the user's turn that stands before an assistant that begins.
	made   bool
	blocks []any
	// calls are those of an assistant's turn, in order.
	calls []call
	// results are those of a user's turn, one for each call of the turn before.
	results []any
}

// call is a call that waits for its result.
type call struct{ logID, id string }

func (t *turn) message() message {
	return message{t.role, append(append([]any{}, t.results...), t.blocks...)}
}

// add takes in the next message of the history.
func (b *builder) add(m *event.Message) error {
	switch {
	case m.Role == event.Assistant:
		return b.reply(m)
	case m.Role != event.User && m.Role != event.Tool && len(b.turns) == 0:
		return b.instruct(m)
	default:
		return b.ask(m)
	}
}

// instruct takes in what leads the history.
func (b *builder) instruct(m *event.Message) error {
	for i := range m.Parts {
		blocks, err := b.said(&m.Parts[i], false)
		if err != nil {
			return err
		}
		b.system = append(b.system, blocks...)
	}
	return nil
}

// ask takes in a message that is not the assistant's.
func (b *builder) ask(m *event.Message) error {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type == event.ToolResultPart {
			if err := b.answer(p); err != nil {
				return err
			}
			continue
		}
		blocks, err := b.said(p, true)
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

// answer takes in a result, if its call waits for it.
func (b *builder) answer(p *event.Part) error {
	asked, i := b.waiting(p.CallID)
	if asked == nil {
		return nil
	}
	r := toolResult{Type: "tool_result", ToolUseID: asked.calls[i].id, IsError: p.IsError}
	for k := range p.Content {
		blocks, err := b.said(&p.Content[k], true)
		if err != nil {
			return err
		}
		r.Content = append(r.Content, blocks...)
	}
	t := b.turn(event.User)
	t.results[i] = r
	return nil
}

// waiting finds the first call with an id that has no result yet, in the
// assistant's turn that is the last or the one before.
func (b *builder) waiting(id string) (asked *turn, i int) {
	n := len(b.turns)
	if n == 0 {
		return nil, 0
	}
	var results []any
	if asked = &b.turns[n-1]; asked.role == event.User && n > 1 {
		results = asked.results
		asked = &b.turns[n-2]
	}
	for i := range asked.calls {
		if asked.calls[i].logID == id && (results == nil || results[i] == nil) {
			return asked, i
		}
	}
	return nil, 0
}

// turn is the turn to add to: the last if it is of that role, else a new one. A
// turn that came to nothing is taken back.
func (b *builder) turn(role event.Role) *turn {
	if n := len(b.turns); n > 0 && b.turns[n-1].role != role {
		b.end()
	}
	n := len(b.turns)
	if n > 0 && b.turns[n-1].role == role {
		return &b.turns[n-1]
	}
	if n == 0 && role == event.Assistant {
		b.turns = append(b.turns, turn{role: event.User, made: true, blocks: []any{newText(unbegun)}})
	}
	next := turn{role: role}
	if n > 0 {
		next.results = make([]any, len(b.turns[n-1].calls))
	}
	b.turns = append(b.turns, next)
	return &b.turns[len(b.turns)-1]
}

// end ends the last turn: calls without a result get one that says so, and an
// assistant's turn loses what it may not end with, or goes.
func (b *builder) end() {
	n := len(b.turns)
	if n == 0 {
		return
	}
	t := &b.turns[n-1]
	if t.role == event.User {
		b.complete(n - 1)
		return
	}
	if t.blocks = withoutLastThoughts(t.blocks); len(t.blocks) > 0 {
		return
	}
	b.turns = b.turns[:n-1]
	if n == 2 && b.turns[0].made {
		b.turns = nil
	}
}

// complete fills in the results that the turn at n lacks.
func (b *builder) complete(n int) {
	for i, r := range b.turns[n].results {
		if r == nil {
			b.turns[n].results[i] = toolResult{
				Type: "tool_result", ToolUseID: b.turns[n-1].calls[i].id, Content: []any{newText(unanswered)}, IsError: true,
			}
		}
	}
}

// finish ends the last turn of all.
func (b *builder) finish() {
	if n := len(b.turns); n > 0 && len(b.turns[n-1].calls) > 0 {
		b.turn(event.User)
	}
	b.end()
}
