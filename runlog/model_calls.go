package runlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// modelCalls makes the ops of model calls from answers and steps.
type modelCalls struct {
	*current
	*opIndex
	steps map[stepKey]*Op
	open  *Op // the open call
	last  *Op // the op of the last answer, until its step completes
	ahead *Op // the op of a completed step whose answer has not come yet

	heard time.Time // the newest message or start of a turn that an answer can follow
	late  time.Time // the newest result whose call has not come yet
}

type stepKey struct {
	turn ulid.ULID
	step int
}

// hear notes the time of a message or the start of a turn. No answer follows a result
// before the call of the result; early says that a result has come whose call has not.
func (b *modelCalls) hear(early bool) {
	at := event.Dated(b.e.Timestamp)
	if early && slices.Contains(b.e.Broken(), event.OrphanResult) {
		b.late = at
		return
	}
	if !early && at.Before(b.late) {
		at = b.late
	}
	b.heard = at
}

// answer returns the llm op of a message.
func (b *modelCalls) answer(m *event.Message) *Op {
	id := cmp.Or(m.Group, m.ResponseID)
	op := b.answers[id]
	if id == "" || op == nil || b.owner[op] != b.turn {
		op = b.open
	}
	if op == nil {
		op = b.counted()
	}
	b.ahead = nil
	if op == nil && b.turn != nil && b.turn.effects && m.Model == "" && m.Usage.IsZero() {
		return nil // the program of the turn said it
	}
	if op == nil {
		op = b.begin(LLMOp, b.e.ID.String(), m.Model)
		op.startAt(b.heard)
	}
	if id != "" {
		b.answers[id] = op
	}
	if b.last = op; op.stepped {
		b.last = nil
	}
	op.Name = cmp.Or(op.Name, m.Model)
	op.respond(b.content(b.e.Data))
	if op != b.open {
		op.end(b.e, OpOK)
	}
	return op
}

// counted returns the op of the completed step before the event, if the step is of the
// answer that the event is: some logs count an answer a moment before they have it.
func (b *modelCalls) counted() *Op {
	op := b.ahead
	if op == nil || b.owner[op] != b.turn || !projection.IsAhead(op.Ended, b.e.Timestamp) {
		return nil
	}
	op.startAt(b.heard)
	return op
}

// startAt moves the start of an op to the time of the event that it answers: the log has no
// start of the call.
func (o *Op) startAt(heard time.Time) {
	if !heard.IsZero() && heard.Before(o.Started) {
		o.Started = heard
	}
}

func (b *modelCalls) step() (*Op, error) {
	p, err := event.DecodeKept[event.StepCompletion](b.e)
	if err != nil {
		return nil, err
	}
	key := stepKey{p.TurnID, p.Step}
	if b.e.Type.Name() == event.StepStarted {
		op := b.open
		if op == nil || !op.effect || b.owner[op] != b.turn || b.steps[key] == op {
			op = b.begin(LLMOp, b.e.ID.String(), p.Model)
		}
		op.ask(b.content(b.e.Data))
		op.Name = cmp.Or(p.Model, op.Name)
		b.steps[key], b.open = op, op
		return op, err
	}
	op := b.steps[key]
	if op == nil && p.ResponseID != "" {
		op = b.answers[p.ResponseID]
	} else if op == nil && b.owner[b.last] == b.turn {
		op = b.last
	}
	if _, started := b.steps[key]; !started && p.ResponseID == "" && p.Usage.IsZero() && p.Error == "" {
		b.log(b.logLine()) // the cost of a session, not of an answer
		return nil, nil
	}
	b.last = nil
	if op == nil || op.Kind != LLMOp {
		op = b.begin(LLMOp, b.e.ID.String(), p.Model)
		b.ahead = op
	}
	delete(b.steps, key)
	op.stepped = true
	op.respond(b.content(b.e.Data))
	op.Error, op.Status = p.Error, statusOf(p.Error != "")
	if op == b.open || op.Ended.IsZero() {
		op.Ended = b.e.Timestamp
	}
	if b.open == op && !op.effect {
		b.open = nil
	}
	return op, nil
}
