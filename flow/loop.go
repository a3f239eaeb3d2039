package flow

import (
	"context"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// work is the next step of the loop.
type work struct {
	kind  workKind
	turn  *projection.PathTurn // to run
	pause *Hibernated          // to consume before the turn
	input *projection.PostedInput
}

type workKind int

const (
	workTurn workKind = iota
	workInput
	workPause // the open turn waits
	workDone
)

// loop runs turns until the session has nothing to do. The error is the reason why the runner
// stops before that; it is a *Hibernated if the open turn waits.
func (r *runner) loop(ctx context.Context) error {
	for {
		r.mu.Lock()
		w, err := r.nextWork(ctx)
		r.mu.Unlock()
		if err == nil {
			err = r.do(ctx, w)
		}
		if err != nil || w.kind == workDone {
			return err
		}
	}
}

// nextWork finds the next work. The caller holds r.mu.
func (r *runner) nextWork(ctx context.Context) (work, error) {
	p, err := r.pending(ctx)
	if err != nil {
		return work{}, err
	}
	if p.Aborted != nil && isFlowTurn(p.Aborted) {
		return work{kind: workTurn, turn: p.Aborted}, nil
	}
	if p.Turn != nil && r.runs(p.Turn) {
		w := work{kind: workTurn, turn: p.Turn}
		if !hibernates(&p) {
			return w, nil
		}
		if w.pause, err = hibernationOf(ctx, r.log, r.session, &p); err != nil {
			return work{}, err
		}
		if !w.pause.due(r.now()) && r.resume != w.pause.Cursor.ID {
			w.kind = workPause
		}
		return w, nil
	}
	if len(p.Inbox) > 0 {
		return work{kind: workInput, input: &p.Inbox[0]}, nil
	}
	return work{kind: workDone}, nil
}

// hibernates reports whether the open turn hibernates. A hibernation that a fork or a copy
// inherited does not count.
func hibernates(p *projection.Pending) bool { return p.Cursor != nil && !p.Cursor.Inherited }

// abortOf is the request to abort a turn, nil if there is none.
func (r *runner) abortOf(t *projection.PathTurn) *event.Abort {
	control, _ := projection.State(r.live, projection.Control())
	for _, a := range control.Aborts {
		if a.Seq > t.Seq && (a.TurnID.IsZero() || a.TurnID == t.ID) {
			return &event.Abort{TurnID: t.ID, By: a.By, Reason: a.Reason}
		}
	}
	return nil
}

func (r *runner) do(ctx context.Context, w work) error {
	switch w.kind {
	case workTurn:
		return r.runTurn(ctx, w)
	case workInput:
		return r.takeInput(ctx, w.input)
	case workPause:
		r.pausedInput = w.turn.InputID
		return w.pause
	}
	return nil
}

// takeInput begins a turn with a waiting input.
func (r *runner) takeInput(ctx context.Context, in *projection.PostedInput) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, id, err := r.posted(ctx, in.Seq)
	if err != nil {
		return err
	}
	return r.startTurn(ctx, Input{ID: in.InputID, Messages: x.Messages, Steer: in.Steer}, snapshotOf(r.session, id))
}

// startTurn appends an input and the start of its turn. The caller holds r.mu.
func (r *runner) startTurn(ctx context.Context, in Input, snapshot string) error {
	var events []event.Event
	var start event.TurnStart
	err := r.append(ctx, func() ([]event.Event, error) {
		p, err := r.pending(ctx)
		if err != nil {
			return nil, err
		}
		events = nil
		if p.Turn != nil { // of an import, or of the parent of a fork
			events = append(events, event.New(event.TurnCompletion{TurnID: p.Turn.ID, Status: event.TurnStatusInterrupted, StopReason: "interrupted"}))
		}
		events = append(append(events, r.describeChild()...), r.answerForChild()...)
		calls := r.openCalls(events)
		for i := range in.Messages {
			calls = unanswered(calls, &in.Messages[i])
		}
		events = append(append(events, interrupt(calls)...), in.messages()...)
		start = event.TurnStart{Agent: r.name, Index: p.NextTurn, SnapshotID: snapshot, InputID: in.ID, Version: r.version}
		events = append(events, event.New(start))
		return events, r.playStart(&start, &events[len(events)-1])
	})
	if err != nil {
		return err
	}
	r.fresh = r.freshRecords(events, start, in)
	r.logLine(ctx, "turn started")
	return nil
}

// freshRecords are the records of a turn whose first events were just appended.
func (r *runner) freshRecords(events []event.Event, start event.TurnStart, in Input) *records {
	rec := newRecords(r.session, events[len(events)-1].ID, r.live.Head.Seq)
	rec.start, rec.input, rec.ownStart = start, in.clone(), true
	for i := range rec.input.Messages {
		rec.input.Messages[i].InputID = in.ID
	}
	rec.before, rec.point = rec.seq-int64(len(events)), r.newest(rec.turn)
	rec.spent.since = rec.point.time
	return rec
}

// recordsOf returns the records of the open turn: from memory, if this runner has just
// begun it.
func (r *runner) recordsOf(ctx context.Context, t *projection.PathTurn) (*records, error) {
	rec, tail := r.fresh, r.live.TakeTail()
	r.fresh = nil
	if rec != nil && rec.turn == t.ID {
		return rec, nil
	}
	return loadRecords(ctx, r.log, r.session, t, r.live.Head, tail)
}

// runTurn executes the open turn and appends its end. It returns nil if the turn ended or
// hibernates.
func (r *runner) runTurn(ctx context.Context, w work) error {
	t, err := r.prepareTurn(ctx, w)
	if err != nil || t == nil {
		return err
	}
	defer t.cancel(nil)
	failed := t.execute()
	r.mu.Lock()
	defer r.mu.Unlock()
	t.playEnd(failed)
	err = r.endTurn(ctx, t, failed)
	r.turn = nil
	r.endTurnSpan(ctx, t.span, t.end, errors.Join(failed, err))
	return err
}

// prepareTurn reads the records of a turn and consumes its cursor. It returns nil if the
// turn cannot continue: then it has ended it.
func (r *runner) prepareTurn(ctx context.Context, w work) (*turn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, err := r.recordsOf(ctx, w.turn)
	if err != nil {
		return nil, err
	}
	r.out.listen(r.wanted == "" || r.wanted == rec.input.ID)
	if !rec.onPath(w.turn) {
		return nil, r.complete(ctx, rec, nil, event.TurnCompletion{Status: event.TurnStatusInterrupted, StopReason: "interrupted"})
	}
	if rec.start.Version != r.version && r.options.Resume != nil {
		if err := r.options.Resume(rec.difference(rec.seq, "", "version", rec.start.Version, r.version)); err != nil {
			return nil, err
		}
	}
	if w.pause != nil {
		r.resume = ""
		resumed := event.TurnResumption{TurnID: rec.turn, CursorID: w.pause.Cursor.ID, SnapshotID: w.pause.Ref.Snapshot}
		if err := r.appendEvents(ctx, event.New(resumed)); err != nil {
			return nil, err
		}
	}
	t, err := r.newTurn(ctx, rec)
	if err != nil {
		return nil, err
	}
	if a := r.abortOf(w.turn); a != nil {
		t.abort(*a)
	}
	r.turn = t
	return t, nil
}

// execute calls the turn function in a goroutine of its own. A panic, or the end of the
// goroutine, is an error.
func (t *turn) execute() error {
	if t.aborted != nil {
		return ErrAborted
	}
	result := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() { result <- err }()
		defer catch(&err)
		err = t.r.run(t.ctx, t)
	}()
	return <-result
}

var errGoexit = errors.New("the turn function ended its goroutine")
