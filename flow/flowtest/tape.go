package flowtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
)

// tape is a recorded session, as the turns that the agent is to run again.
type tape struct {
	log     *eventlog.Log
	session string
	// items are the items after event through, the last one before the first turn.
	items   []item
	through event.Event
	// imported reports that the turns are of a transcript without effects.
	imported bool
}

// item is a turn, or an event that another writer appended between two turns.
type item struct {
	turn  *recordedTurn
	event *event.Event
}

// readTape reads a recorded session.
func readTape(ctx context.Context, log *eventlog.Log, session string) (*tape, error) {
	b := &builder{tape: &tape{log: log, session: session}, turns: map[ulid.ULID]*recordedTurn{}, reviews: map[string]*effect{}, keys: map[string]*effect{}}
	var group []event.Event
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return nil, err
		}
		group = append(group, *e.Effective())
		if e.More() > 0 {
			continue
		}
		if err := b.group(group); err != nil {
			return nil, err
		}
		group = nil
	}
	if err := b.group(group); err != nil {
		return nil, err
	}
	b.tape.through = b.last
	if i := slices.IndexFunc(b.tape.items, func(x item) bool { return x.turn != nil && b.replayed(x.turn) }); i >= 0 {
		b.tape.items = b.tape.items[i:]
		return b.tape, b.tape.setThrough(ctx)
	}
	return b.tape, b.tape.importTurns(ctx)
}

// setThrough finds the last event before the first turn.
func (t *tape) setThrough(ctx context.Context) (err error) {
	t.through, err = t.log.Event(ctx, t.session, t.items[0].turn.first-1)
	if err != nil {
		return fmt.Errorf("the event before the first turn: %w", err)
	}
	return nil
}

// builder reads the events of a tape.
type builder struct {
	tape    *tape
	turns   map[ulid.ULID]*recordedTurn
	reviews map[string]*effect // by interrupt id
	keys    map[string]*effect // by key
	open    *recordedTurn
	ended   *recordedTurn // the turn that ended last
	last    event.Event
}

// replayed reports whether a turn is run again: its end is in this session, not in a parent
// or in the original of a copy.
func (b *builder) replayed(t *recordedTurn) bool {
	newest := t.events[len(t.events)-1]
	return newest.SessionID == b.tape.session && !newest.Copied()
}

// group reads the events of one append.
func (b *builder) group(events []event.Event) error {
	run := 0 // the first event of the outcome that an effect_completed ends
	for i := range events {
		e := &events[i]
		b.last = *e
		var err error
		switch e.Type.Name() {
		case event.TurnStarted:
			err = b.turn(events[:i], e)
		case event.EffectIntended, event.ToolStarted, event.StepStarted, event.WaitStarted:
			b.between(events[run:i])
			run = i + 1
			err = b.begin(e)
		case event.EffectCompleted:
			err = b.complete(e, events[run:i])
			run = i + 1
		}
		if err != nil {
			return fmt.Errorf("event %d of the recording: %w", e.Seq, err)
		}
		if e.Type.Name() == event.TurnStarted {
			run = i + 1
		}
	}
	return b.rest(events[min(run, len(events)):])
}

// turn begins a turn of flow. before are the events of the same append.
func (b *builder) turn(before []event.Event, e *event.Event) error {
	start, err := event.DecodeKept[event.TurnStart](e)
	if err != nil || start.InputID == "" {
		b.open = nil
		return err
	}
	t := &recordedTurn{id: e.ID, seq: e.Seq, first: e.Seq - int64(len(before)), start: start, time: e.Timestamp, steps: map[int]*step{}}
	t.input.ID = start.InputID
	for i := range before {
		m, ok, err := event.Decode[event.Message](&before[i])
		if err != nil {
			return err
		}
		if ok && m.InputID == start.InputID {
			m.InputID = ""
			t.input.Messages = append(t.input.Messages, m)
		}
	}
	t.events = append(slices.Clone(before), *e)
	b.turns[t.id], b.open = t, t
	b.tape.items = append(b.tape.items, item{turn: t})
	return nil
}

// between reads events that the turn function appended, or that came from outside.
func (b *builder) between(events []event.Event) {
	for i := range events {
		if b.open == nil || !structural(&events[i]) {
			continue
		}
		b.open.events = append(b.open.events, events[i])
		m, ok, err := event.Decode[event.Message](&events[i])
		if !ok || err != nil || m.InputID == "" {
			continue
		}
		id := m.InputID
		m.InputID = ""
		if n := len(b.open.steers); n > 0 && b.open.steers[n-1].ID == id {
			b.open.steers[n-1].Messages = append(b.open.steers[n-1].Messages, m)
		} else {
			b.open.steers = append(b.open.steers, playback.Input{ID: id, Messages: []event.Message{m}})
		}
	}
}

// begin reads an event that begins an effect or a wait.
func (b *builder) begin(e *event.Event) error {
	switch e.Type.Name() {
	case event.EffectIntended:
		return b.intent(e)
	case event.WaitStarted:
		return b.wait(e)
	case event.StepStarted:
		return b.stepStarted(e)
	}
	if b.open != nil {
		b.open.events = append(b.open.events, *e)
	}
	return nil
}

func (b *builder) intent(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectIntent](e)
	t := b.turns[p.TurnID]
	if err != nil || t == nil {
		return err
	}
	s, x, err := t.effect(p.Ordinal, e.Seq)
	if err != nil || x.intent != nil {
		return err // another attempt
	}
	if p.Kind == kindPatch {
		s.patch, s.effects = p.Name, nil
	}
	x.intent, x.seq, x.intentID, x.intentTime = &p, e.Seq, e.ID, e.Timestamp
	b.keys[p.Key] = x
	t.events = append(t.events, *e)
	return nil
}

// stepStarted belongs to the intent before it.
func (b *builder) stepStarted(e *event.Event) error {
	p, err := event.DecodeKept[event.StepStart](e)
	t := b.turns[p.TurnID]
	if err != nil || t == nil || t.count == 0 {
		return err
	}
	if s := t.steps[t.count-1]; len(s.effects) == 1 && s.effects[0].started == 0 {
		s.effects[0].step, s.effects[0].started = p, e.Seq
		t.events = append(t.events, *e)
	}
	return nil
}

func (b *builder) wait(e *event.Event) error {
	p, err := event.DecodeKept[event.Wait](e)
	t := b.turns[p.TurnID]
	if err != nil || t == nil || p.Ordinal == "" {
		return err
	}
	s, _, err := t.effect(p.Ordinal, e.Seq)
	if err == nil {
		s.wait, s.effects = e, nil
		t.events = append(t.events, *e)
	}
	return err
}

// complete reads the end of an attempt. outcome are the events of the same append before.
func (b *builder) complete(e *event.Event, outcome []event.Event) error {
	p, err := event.DecodeKept[event.EffectCompletion](e)
	t := b.turns[p.TurnID]
	if err != nil || t == nil || !p.RetryAt.IsZero() {
		return err
	}
	s, x, err := t.effect(p.Ordinal, e.Seq)
	if err != nil || x.done != nil {
		return err
	}
	if s.patch != "" {
		s.effects = nil
	} else {
		x.done, x.outcome = e, outcome
	}
	t.events = append(append(t.events, outcome...), *e)
	return nil
}

// rest reads the events of an append that belong to no effect.
func (b *builder) rest(events []event.Event) error {
	for i := range events {
		e := &events[i]
		if err := b.other(e); err != nil {
			return fmt.Errorf("event %d of the recording: %w", e.Seq, err)
		}
	}
	return nil
}

func (b *builder) other(e *event.Event) error {
	switch e.Type.Name() {
	case event.ApprovalRequested:
		return b.request(e)
	case event.ApprovalResolved, event.ApprovalCanceled:
		return b.answer(e)
	case event.AbortRequested:
		return b.abort(e)
	case event.TurnCompleted:
		return b.end(e)
	case event.HeadMoved:
		return b.move(e)
	}
	if c, ok, err := event.Decode[event.Child](e); ok || err != nil {
		if x := b.keys[c.ChildID]; x != nil && c.EventType() != event.ChildBlocked.Type() {
			x.children = append(x.children, *e)
		}
		return err
	}
	switch {
	case b.open != nil:
		b.between([]event.Event{*e})
	case structural(e):
		b.tape.items = append(b.tape.items, item{event: e})
	}
	return nil
}

func (b *builder) request(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalRequest](e)
	t := b.turns[p.TurnID]
	if err != nil || t == nil || p.Ordinal == "" {
		return err
	}
	s, x, err := t.effect(p.Ordinal, e.Seq)
	if err != nil {
		return err
	}
	s.many = s.many || strings.Contains(p.Ordinal, ".")
	x.review, x.answer, x.canceled, x.seq = &p, nil, false, e.Seq
	b.reviews[p.InterruptID] = x
	return nil
}

func (b *builder) answer(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalResolution](e)
	x := b.reviews[p.InterruptID]
	if err != nil || x == nil || x.answer != nil {
		return err
	}
	if e.Type.Name() == event.ApprovalCanceled {
		x.canceled = true
	} else {
		x.answer = &p
	}
	return nil
}

func (b *builder) abort(e *event.Event) error {
	p, err := event.DecodeKept[event.Abort](e)
	if t := b.open; err == nil && t != nil && t.abort == nil && (p.TurnID.IsZero() || p.TurnID == t.id) {
		t.abort, t.aborted = &p, e.Seq
	}
	return err
}

func (b *builder) end(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnCompletion](e)
	t := b.open
	if err != nil || t == nil {
		return err
	}
	t.end, t.endSeq = &p, e.Seq
	t.events = append(t.events, *e)
	b.open, b.ended = nil, t
	return nil
}

// move reads a head_moved: of a failed turn, of a retry, or a rewind.
func (b *builder) move(e *event.Event) error {
	p, err := event.DecodeKept[event.HeadMove](e)
	if err != nil {
		return err
	}
	t := b.ended
	switch {
	case t != nil && t.end.Status == event.TurnStatusFailed && e.Seq == t.endSeq+1:
		t.events = append(t.events, *e)
	case t != nil && p.To == t.endSeq-1: // a retry
		t.end, b.open, b.ended = nil, t, nil
		t.events = slices.DeleteFunc(t.events, func(x event.Event) bool { return x.Seq >= t.endSeq })
	case b.open != nil && b.open.events[len(b.open.events)-1].Seq <= p.To: // it leaves nothing of the turn
	case b.inside(p.To):
		return fmt.Errorf("%w: a rewind into a turn", ErrNotServed)
	default:
		b.open = nil
		b.tape.items = append(b.tape.items, item{event: e})
	}
	return nil
}

// inside reports whether a seq is in a turn, before its end.
func (b *builder) inside(seq int64) bool {
	for _, t := range b.turns {
		if t.seq <= seq && (seq < t.endSeq || t.end == nil && t == b.open) {
			return true
		}
	}
	return false
}
