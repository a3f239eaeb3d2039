package transcript

import "github.com/convlog/convlog/event"

// turns numbers the turns of a session, on each of its paths.
type turns struct {
	turnState
	changes changes
}

// turnState is the state of the numbering after an event.
type turnState struct {
	inputLast bool // the last message is input
	count     int  // number of exchanges
	// started is true after the first turn_started: those events then number the
	// turns. open is true during a turn. needsInput is true until the input of the
	// turn arrives; index is the number of the turn.
	started, open, needsInput bool
	index                     int
}

// observe updates the state with x, and sets the turn of x. before is the entry before
// x.
func (t *turns) observe(x, before *Entry) {
	old := t.turnState
	switch x.Event.Type.Name() {
	case event.HeadMoved:
		if to, err := x.Event.Parent(); err == nil {
			t.turnState = t.changes.at(to)
		}
	case event.TurnStarted:
		t.start(x, before)
	case event.TurnCompleted, event.TurnHibernated:
		t.open, t.needsInput, t.inputLast = false, false, false
	case event.MessageAdded:
		t.message(x)
	}
	if t.turnState != old {
		t.changes.add(change{x.Event.Seq, t.turnState})
	}
}

// start handles a turn_started. The input of the turn can be the entry before it.
func (t *turns) start(x, before *Entry) {
	start, ok, err := event.Decode[event.TurnStart](&x.Event)
	if !ok || err != nil {
		return
	}
	t.started, t.open, t.needsInput, t.index = true, true, true, start.Index
	if before != nil && before.StartsTurn {
		before.Turn, t.needsInput = start.Index, false
	}
}

func (t *turns) message(x *Entry) {
	if x.IsContext() {
		return
	}
	if x.isInput && (t.needsInput || !t.inputLast) {
		switch {
		case t.needsInput:
			x.StartsTurn, x.Turn, t.needsInput = true, t.index, false
		case !t.started || !t.open:
			x.StartsTurn, x.Turn = true, t.count
		}
		t.count++
	}
	t.inputLast = x.isInput
}
