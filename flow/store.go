package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// inputTurns are the turns of the inputs of a session, also of turns that failed.
type inputTurns struct {
	Begun map[string]inputTurn `json:"begun,omitzero"`
	Open  ulid.ULID            `json:"open,omitzero"` // began last
}

// inputTurn is the turn that an input began, or steered.
type inputTurn struct {
	Turn ulid.ULID `json:"turn"`
	Seq  int64     `json:"seq"` // of the turn_started; 0 if the input steered the turn
	// Snapshot is reserved for the end of the turn in Session.
	Snapshot string `json:"snapshot,omitzero"`
	Session  string `json:"session,omitzero"`
}

// ref is the reference to the end of the turn in a session.
func (b *inputTurn) ref(session string) Ref {
	if b.Session == session || b.Turn.IsZero() {
		return Ref{Session: session, Snapshot: b.Snapshot}
	}
	return Ref{Session: session, Snapshot: inheritedSnapshot(session, b.Turn)}
}

// turnsOfInputs folds the turns of inputs. A fork and a copy have the turns of the original.
func turnsOfInputs() projection.Projection[inputTurns] {
	return projection.Projection[inputTurns]{
		Name: "flow:turns", Version: 1, Scope: event.SessionScope, Apply: (*inputTurns).apply,
		Digest: func(*inputTurns) (event.Digest, error) { return "", nil },
	}
}

func (s *inputTurns) apply(e *event.Event) error {
	id, err := e.InputID()
	if err != nil || id == "" && e.Type.Name() != event.TurnStarted {
		return err
	}
	b := inputTurn{Turn: s.Open}
	if e.Type.Name() == event.TurnStarted {
		p, err := event.DecodeKept[event.TurnStart](e)
		if err != nil {
			return err
		}
		s.Open, b = e.ID, inputTurn{Turn: e.ID, Seq: e.Seq, Snapshot: p.SnapshotID, Session: ownerOf(e)}
	}
	if id == "" {
		return nil
	}
	if s.Begun == nil {
		s.Begun = map[string]inputTurn{}
	}
	s.Begun[id] = b
	return nil
}

// ownerOf is the session in which an event was appended first.
func ownerOf(e *event.Event) string {
	if e.Copied() {
		return ""
	}
	return e.SessionID
}

// snapshotOf is the id that is reserved for the snapshot at the end of the turn of an input,
// which an external_input stored.
func snapshotOf(session string, stored ulid.ULID) string {
	return uuid.NewSHA1(uuid.Nil, []byte("turn/"+session+"/"+stored.String())).String()
}

// storing are the events that store an input. There are none if the session has the input.
// If its turn failed last, they open the turn again.
func (r *runner) storing(ctx context.Context, in *Input) (events []event.Event, ref Ref, err error) {
	begun, _ := projection.State(r.live, turnsOfInputs())
	if in == nil {
		ref, err = r.refToResume(ctx, begun)
		return nil, ref, err
	}
	b, begins := begun.Begun[in.ID]
	ref = b.ref(r.session)
	if posted, ok := inInbox(r.live, in.ID); ok {
		_, id, err := r.posted(ctx, posted.Seq)
		return nil, Ref{Session: r.session, Snapshot: snapshotOf(r.session, id)}, err
	}
	if knows(r.live, in.ID) {
		return nil, ref, nil
	}
	if begins && b.Seq > 0 {
		if events, err = r.reopening(ctx, in.ID, b); err != nil || len(events) > 0 {
			return events, ref, err
		}
	}
	e := in.external(r.home)
	ref.Snapshot = snapshotOf(r.session, e.ID)
	return []event.Event{e}, ref, nil
}

// refToResume is the reference of the open turn; of the first input that waits, if no turn is
// open; or of the last turn.
func (r *runner) refToResume(ctx context.Context, begun *inputTurns) (Ref, error) {
	ref := Ref{Session: r.session}
	p, err := r.pending(ctx)
	if err != nil {
		return ref, err
	}
	if p.Turn == nil && len(p.Inbox) > 0 {
		_, id, err := r.posted(ctx, p.Inbox[0].Seq)
		ref.Snapshot = snapshotOf(r.session, id)
		return ref, err
	}
	if calls, _ := projection.State(r.live, projection.Calls()); calls.Turn != nil {
		if b, ok := begun.Begun[calls.Turn.InputID]; ok {
			ref = b.ref(r.session)
		}
	}
	return ref, nil
}

// InputError reports that an input cannot try its turn again: a later turn is in the
// session, or a failed effect may not run again. Send the input with a new id: that
// begins a new turn.
type InputError struct {
	Session, Input string
	// Turn is the turn of the input, which failed.
	Turn   ulid.ULID
	Reason string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("session %q: turn %s of input %q failed, and is not tried again: %s; send the input with a new id to begin a new turn",
		e.Session, e.Turn, e.Input, e.Reason)
}

// reopening are the events that open a failed turn again: the head moves to the end of the
// turn, before its turn_completed. The turn has everything that it did but the errors of its
// last effects, which are taken back. There are none if the turn did not fail.
func (r *runner) reopening(ctx context.Context, input string, b inputTurn) ([]event.Event, error) {
	names := func(p *event.TurnCompletion) bool { return p.TurnID == b.Turn }
	end, seq, err := find(ctx, r.log, r.session, eventlog.Between(b.Seq, r.live.Head.Seq).Backward(), names, event.TurnCompleted)
	if err != nil || seq == 0 || end.Status.Known() != event.TurnStatusFailed {
		return nil, err
	}
	refused := &InputError{Session: r.session, Input: input, Turn: b.Turn}
	path, _ := projection.State(r.live, inputs())
	p, err := r.pending(ctx)
	if err != nil {
		return nil, err
	}
	if path.Last > b.Seq || p.Turn != nil && r.runs(p.Turn) {
		refused.Reason = fmt.Sprintf("a later turn is in the session (event %d)", max(path.Last, turnSeq(p.Turn)))
		return nil, refused
	}
	rec, err := loadRecords(ctx, r.log, r.session, &projection.PathTurn{ID: b.Turn, Seq: b.Seq}, event.Head{Seq: seq}, nil)
	if err != nil {
		return nil, err
	}
	events := []event.Event{event.New(event.HeadMove{To: seq - 1, Reason: "retry"})}
	again := []event.EffectClass{event.EffectPure, event.EffectIdempotent, event.EffectDedupe}
	for _, x := range rec.failedLast() {
		if c := x.intent.Class; !slices.Contains(again, c) {
			refused.Reason = fmt.Sprintf("effect %s %q has the class %s, which does not run again", x.ordinal, x.intent.Name, c)
			return nil, refused
		}
		done := *x.done
		done.RetryAt, done.Usage, done.Reason = r.now(), event.Usage{}, "retry"
		events = append(events, event.New(done))
	}
	return events, nil
}

func turnSeq(t *projection.PathTurn) int64 {
	if t == nil {
		return 0
	}
	return t.Seq
}
