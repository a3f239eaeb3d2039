package projection

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
)

// answer notes the kind of the result of a call.
func (b *block) answer(id string, made string) {
	if b.changed == nil {
		b.changed = map[string]string{}
	}
	b.changed[id] = made
}

// answerOf is the kind of the result of the newest call of an id; false if no call of the
// id has one.
func (b *block) answerOf(id string) (made string, ok bool) {
	if made, ok = b.changed[id]; !ok {
		made, ok = b.answered[id]
	}
	return made, ok
}

// result gives a result, the only one of parts, to its call. If the call was rendered into
// a request as interrupted, the result becomes a message of its own. A result without a
// call waits for a later call of the block, and is left out if there is none.
func (b *block) result(p *piece, parts []event.Part, single bool) {
	part := &parts[0]
	e := &Entry{Seq: p.seq, Message: p.message, Made: p.made}
	e.Message.Role, e.Message.Parts = event.Tool, parts
	if !single {
		e.Message.Extra = nil
	}
	b.clear(e, p.source)
	if newest := b.open[part.CallID]; newest != nil {
		if c := newest.unanswered(); c != nil {
			c.result = e
		}
		return
	}
	if made, ok := b.answerOf(part.CallID); !ok && b.early[part.CallID] == nil {
		if b.early == nil {
			b.early = map[string]*Entry{}
		}
		b.early[part.CallID] = e
		return
	} else if made != madeInterrupted || part.Interrupted {
		return
	}
	b.answer(part.CallID, madeLate)
	note := event.Text(fmt.Sprintf("[late result of call %s]", part.CallID))
	e.Message.Role, e.Message.Parts = event.User, append([]event.Part{note}, e.Message.Parts[0].Content...)
	e.Made = madeLate
	b.add(*e)
}

// clear replaces the content of a result that a compaction cleared.
func (l *layout) clear(e *Entry, source int64) {
	if source < l.cleared[e.Message.Parts[0].CallID] {
		e.ownPart().Content = []event.Part{event.Text(clearedText)}
		e.Made = madeCleared
	}
}

// ownPart returns the only part of a result, for a change: the message may be shared.
func (e *Entry) ownPart() *event.Part {
	e.Message.Parts = slices.Clone(e.Message.Parts)
	return &e.Message.Parts[0]
}

// executed gives the results of executions to the calls without a result.
func (b *block) executed(executions []item) error {
	for i := range slices.Backward(executions) { // the newest first
		x := &executions[i]
		id, result, err := x.executed()
		if err != nil {
			return err
		}
		if c := b.open[id].unanswered(); c != nil {
			c.result = &Entry{Seq: x.seq, Message: event.Message{Role: event.Tool, Parts: []event.Part{result}}, Made: madeExecution}
			b.clear(c.result, x.seq)
		}
	}
	return nil
}

// pairEarly gives the newest call of an id without a result the result that came before
// it.
func (b *block) pairEarly(id string) {
	e := b.early[id]
	if e == nil {
		return
	}
	c := b.open[id].unanswered()
	c.result = e
	if e.Message.Parts[0].Name == "" {
		e.ownPart().Name = c.name
	}
	delete(b.early, id)
}
