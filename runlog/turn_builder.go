package runlog

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// turnBuilder makes the turns of a run, with their inputs, outputs and ends.
type turnBuilder struct {
	*current
	finder turns.Finder
	turns  map[*turns.Turn]*Turn
	byID   map[ulid.ULID]*Turn
	inputs map[*turns.Turn]turnInput // of exchanges that became turns

	leading []leadingContext
	// external are the texts of external inputs, by input id.
	external map[string]string
}

func newTurnBuilder(at *current) turnBuilder {
	return turnBuilder{current: at, turns: map[*turns.Turn]*Turn{}, byID: map[ulid.ULID]*Turn{}, inputs: map[*turns.Turn]turnInput{},
		external: map[string]string{}}
}

// next finds the turn of the event. A turn_started interrupts the turn before it. ended is
// true if the event is the last one of its turn.
func (b *turnBuilder) next() (ended bool, err error) {
	before := b.finder.Turn()
	ended, err = b.finder.Next(b.e)
	if x := b.turns[before]; err == nil && x != nil && !before.ID.IsZero() && b.e.Type.Name() == event.TurnStarted {
		b.end(x, turnEnd{status: event.TurnStatusInterrupted})
	}
	return ended, err
}

// turnInput is the input of a turn.
type turnInput struct{ messages, context []event.Message }

// enter sets b.turn to the turn of the event, and adds a new turn to the run. The agent is
// the agent of the session.
func (b *turnBuilder) enter(agent string) {
	at := b.finder.Turn()
	if b.e.Type.Name() == event.HeadMoved {
		b.endLeading()
	}
	if b.turn = nil; at == nil {
		return
	}
	t := b.turns[at]
	if t != nil && t.Orphaned && b.onPath {
		t = nil // the path continues from the exchange in another turn
	}
	if x := b.turns[at.Input]; t == nil && x != nil {
		b.inputs[at.Input] = turnInput{slices.Clone(x.Input), slices.Clone(x.Context)}
		if x.Orphaned != b.onPath { // both are on the path, or neither
			t = x // the exchange becomes the turn
			delete(b.turns, at.Input)
		}
	}
	if t == nil {
		if t = b.newTurn(at, agent); t == nil {
			return
		}
		b.run.Turns = append(b.run.Turns, t)
	}
	b.turns[at] = t
	t.ID, t.Index, b.turn = at.ID, at.Index, t
	if !b.e.Type.Upkeep() && b.e.Type.Scope() != event.TreeScope {
		t.To = max(t.To, b.e.Seq)
		if t.Ended.IsZero() || turns.IsWork(b.e) {
			t.Ended = b.e.Timestamp
		}
	}
	if took, ok := turns.Recorded(b.e); ok && !b.inherited {
		t.TookMS += took.Milliseconds()
	}
	b.byID[t.ID] = t
}

// newTurn returns a turn that begins with the event. Its input is the input of the
// exchange that it took over. It is nil for a head_moved into a turn that the run
// does not have.
func (b *turnBuilder) newTurn(at *turns.Turn, agent string) *Turn {
	if b.e.Type.Name() == event.HeadMoved {
		return nil
	}
	t := &Turn{From: at.Start, Orphaned: !b.onPath, Inherited: b.inherited || b.e.Copied(), Started: b.e.Timestamp, Agent: agent}
	input, ok := b.inputs[at]
	if !ok {
		input = b.inputs[at.Input]
	}
	t.Input, t.Context = slices.Clone(input.messages), slices.Clone(input.context)
	return t
}
