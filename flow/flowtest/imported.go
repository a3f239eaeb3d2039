package flowtest

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
)

// importTurns makes turns of a transcript without effects: a user message begins a turn, an
// answer is a model call, and the calls of an answer are a batch.
func (t *tape) importTurns(ctx context.Context) error {
	b := &importer{tape: t, calls: map[string]*effect{}}
	t.items, t.imported, t.through = nil, true, event.Event{}
	for e, err := range t.log.Read(ctx, t.session, eventlog.All().OnPath()) {
		if err != nil {
			return err
		}
		m, ok, err := event.Decode[event.Message](&e)
		if err == nil && ok {
			err = b.message(&e, m)
		}
		if err != nil {
			return fmt.Errorf("event %d of the recording: %w", e.Seq, err)
		}
		if b.turn == nil {
			t.through = e
		}
	}
	if b.turn == nil || b.turn.count == 0 {
		return fmt.Errorf("%w: session %q has no turn with an answer", ErrNotServed, t.session)
	}
	return b.close()
}

// importer reads the messages of a transcript.
type importer struct {
	tape  *tape
	turn  *recordedTurn
	calls map[string]*effect // without a result
}

func (b *importer) message(e *event.Event, m event.Message) error {
	switch m.Role {
	case event.User:
		return b.user(e, m)
	case event.Assistant:
		return b.answer(e, m)
	}
	for _, r := range m.ToolResults() {
		if x := b.calls[r.CallID]; x != nil {
			delete(b.calls, r.CallID)
			b.result(e, x, r)
		}
	}
	return nil
}

func (b *importer) user(e *event.Event, m event.Message) error {
	if b.turn == nil || b.turn.count > 0 {
		if err := b.close(); err != nil {
			return err
		}
		b.turn = &recordedTurn{id: e.ID, seq: e.Seq, first: e.Seq, time: e.Timestamp, steps: map[int]*step{},
			start: event.TurnStart{Index: len(b.tape.items)}, end: &event.TurnCompletion{Status: event.TurnStatusCompleted}}
		b.turn.input.ID = fmt.Sprintf("imported-%d", e.Seq)
		b.tape.items = append(b.tape.items, item{turn: b.turn})
	}
	b.turn.input.Messages = append(b.turn.input.Messages, m)
	b.turn.endSeq = e.Seq
	return nil
}

// close gives each call without a result an interrupted one.
func (b *importer) close() error {
	for id, x := range b.calls {
		b.result(x.done, x, event.Part{Type: event.ToolResultPart, CallID: id, Name: x.name(), IsError: true, Interrupted: true})
	}
	clear(b.calls)
	return nil
}

func (b *importer) answer(e *event.Event, m event.Message) error {
	if b.turn == nil {
		return nil // before the first user
	}
	b.turn.endSeq = e.Seq
	step := event.New(event.StepCompletion{Model: m.Model, Provider: m.Provider, StopReason: m.StopReason, Usage: m.Usage, ResponseID: m.ResponseID})
	x := b.effect(e, kindModel, m.Model, nil)
	b.end(e, x, []event.Event{copyOf(e), step})
	b.add(false, x)
	var effects []*effect
	for i, call := range m.ToolCalls() {
		x := b.effect(e, kindTool, call.Name, &call)
		x.ordinal, x.done = fmt.Sprintf("%d.%d", b.turn.count, i), e
		b.calls[call.CallID] = x
		effects = append(effects, x)
	}
	if len(effects) > 0 {
		b.add(true, effects...)
	}
	return nil
}

// add adds a step to the turn.
func (b *importer) add(many bool, effects ...*effect) {
	b.turn.steps[b.turn.count] = &step{first: effects[0].seq, many: many, effects: effects}
	b.turn.count++
}

func (b *importer) effect(e *event.Event, kind, name string, call *event.Part) *effect {
	x := &effect{ordinal: fmt.Sprint(b.turn.count), seq: e.Seq, intentID: event.NewID(), intentTime: e.Timestamp, intent: &event.EffectIntent{Kind: kind, Name: name, Key: fmt.Sprint(e.ID, "/", name)}}
	if call != nil {
		x.intent.Arguments = call.Arguments
	}
	return x
}

// result is the result of a call in message e.
func (b *importer) result(e *event.Event, x *effect, r event.Part) {
	message := event.ToolMessage(r)
	message.Timestamp = e.Timestamp
	b.end(e, x, []event.Event{event.New(event.ToolCompletion{CallID: r.CallID, Name: x.name(), IsError: r.IsError}), message})
}

// end gives an effect its outcome.
func (b *importer) end(e *event.Event, x *effect, outcome []event.Event) {
	done := event.New(event.EffectCompletion{Key: b.turn.input.ID + "/" + x.ordinal, TurnID: b.turn.id, Ordinal: x.ordinal, Attempt: 1})
	done.Seq = e.Seq
	playback.Mark{ID: done.ID, Time: e.Timestamp}.Put(&done)
	x.outcome, x.done = outcome, &done
}
