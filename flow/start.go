package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// Start says where a conversation begins or continues. The zero Start is a new session
// with a new id.
type Start struct {
	kind     startKind
	session  string
	snapshot string
	token    string
	parent   event.SessionParent // of a child
	content  func(s *settings) ([]event.Event, error)
	place    place // of the snapshot
}

type startKind int

const (
	startNew startKind = iota
	startSession
	startSnapshot
	startToken
	startState
)

// Session continues the session with an id, or begins it.
func Session(id string) Start { return Start{kind: startSession, session: id} }

// FromSnapshot continues a session after one of its snapshots. The events after it leave
// the path. A snapshot of a hibernation can be continued once (ErrConsumed).
func FromSnapshot(session, snapshot string) Start {
	return Start{kind: startSnapshot, session: session, snapshot: snapshot}
}

// FromToken is FromSnapshot of a token.
func FromToken(token string) Start { return Start{kind: startToken, token: token} }

// FromState begins a new session with the content of another conversation. An empty
// Content.Session gives it a new id. A session of that id must not exist.
func FromState[S any](c Content[S]) Start {
	return Start{kind: startState, session: c.Session, content: func(s *settings) ([]event.Event, error) { return c.events(s) }}
}

// StartOptions are the options of one Start. They are not recorded.
type StartOptions struct {
	Checkpoint Checkpoint
	// Answers answer open reviews before the turn continues.
	Answers []Answer
	// TakeOver claims the session also if its runner is alive, for example in a stopped
	// process. The old runner cannot append any more; its effect may still run.
	TakeOver bool
	// Retry continues the turn that failed last, with its id and its finished effects. If its
	// last effects failed, they are tried again. It is ErrStart if their class does not
	// allow that.
	Retry bool
}

// Resumed describes the turn that Start continued.
type Resumed struct {
	Turn ulid.ULID
	Head event.Head
	// Others is the number of branches that rewinds left; see projection.Branches.
	Others int
}

// open claims a session for a runner.
func (s *settings) open(ctx context.Context, from Start, o StartOptions) (*runner, Resumed, error) {
	from, err := s.resolve(from)
	if err != nil {
		return nil, Resumed{}, err
	}
	for {
		r, resumed, err := s.tryOpen(ctx, from, o)
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			o.Answers = nil // recorded
			continue
		}
		if errors.Is(err, eventlog.ErrExists) && ctx.Err() == nil && from.kind == startSession {
			continue
		}
		if err == nil {
			r.player = playback.Of(ctx, r.session)
		}
		return r, resumed, err
	}
}

// resolve checks the arguments of a Start and decodes a token.
func (s *settings) resolve(from Start) (Start, error) {
	switch from.kind {
	case startNew, startState:
		if from.session == "" {
			from.session = s.options.NewID()
		}
	case startToken:
		ref, err := ParseToken(from.token, s.options.Key)
		if err != nil {
			return from, err
		}
		from.kind, from.session, from.snapshot = startSnapshot, ref.Session, ref.Snapshot
	case startSnapshot:
		if from.snapshot == "" {
			return from, fmt.Errorf("%w: the snapshot id is empty", ErrStart)
		}
	}
	if err := event.CheckSessionID(from.session); err != nil {
		return from, fmt.Errorf("%w: %w", ErrStart, err)
	}
	return from, nil
}

func (s *settings) tryOpen(ctx context.Context, from Start, o StartOptions) (*runner, Resumed, error) {
	live, err := resume(ctx, s.log, from.session, s.set, s.options.Snapshots)
	missing := errors.Is(err, eventlog.ErrNotFound)
	switch {
	case missing && from.kind == startSnapshot, err != nil && !missing:
		return nil, Resumed{}, fmt.Errorf("%w: %w", ErrStart, err)
	case missing:
		return s.begin(ctx, from, o)
	case from.kind == startState:
		return nil, Resumed{}, fmt.Errorf("%w: session %q exists: %w", ErrStart, from.session, eventlog.ErrExists)
	}
	if from.kind == startSnapshot {
		if from.place, err = placeOf(ctx, s.log, Ref{from.session, from.snapshot}); err != nil {
			return nil, Resumed{}, fmt.Errorf("%w: %w", ErrStart, err)
		}
	}
	r := s.newRunner(from.session, live)
	h, err := r.ready(ctx, from, o)
	if err != nil {
		return nil, Resumed{}, err
	}
	if h != nil {
		return nil, Resumed{}, h
	}
	if err := r.claim(ctx); err != nil {
		return nil, Resumed{}, err
	}
	if err := r.move(ctx, from, o); err != nil {
		return nil, Resumed{}, errors.Join(err, r.release(context.WithoutCancel(ctx)))
	}
	resumed, err := r.resumed(ctx)
	if err != nil {
		return nil, Resumed{}, errors.Join(err, r.release(context.WithoutCancel(ctx)))
	}
	return r, resumed, nil
}

func (s *settings) newRunner(session string, live *projection.Live) *runner {
	return &runner{settings: s, session: session, live: live, out: newStream(), sinks: s.options.Sinks.Run(s.log, session, s.root), changed: make(chan struct{})}
}

// ready checks that the session can be claimed, and records answers. It returns the
// hibernation if the open turn cannot continue yet.
func (r *runner) ready(ctx context.Context, from Start, o StartOptions) (*Hibernated, error) {
	control, _ := projection.State(r.live, projection.Control())
	if err := checkAlone(ctx, r.log, r.session, control.Claim); err != nil && !(o.TakeOver && errors.Is(err, ErrAlreadyRunning)) {
		return nil, err
	}
	if len(o.Answers) > 0 {
		if _, err := Decide(ctx, r.log, r.session, o.Answers...); err != nil {
			return nil, err
		}
		if err := r.live.Follow(ctx); err != nil {
			return nil, err
		}
	}
	if from.kind == startSnapshot {
		return r.checkSnapshot(ctx, from)
	}
	p, err := r.pending(ctx)
	if err != nil || p.Turn == nil {
		return nil, err
	}
	if r.runs(p.Turn) && p.Turn.Agent != r.name {
		return nil, fmt.Errorf("%w: the open turn of session %q belongs to agent %q, not %q", ErrStart, r.session, p.Turn.Agent, r.name)
	}
	return r.stillWaits(ctx, &p)
}

// stillWaits returns the hibernation of pending work that cannot continue yet. A
// checkpoint continues with each Start.
func (r *runner) stillWaits(ctx context.Context, p *projection.Pending) (*Hibernated, error) {
	if !hibernates(p) || !r.runs(p.Turn) {
		return nil, nil
	}
	h, err := hibernationOf(ctx, r.log, r.session, p)
	if err != nil {
		return nil, err
	}
	checkpoint := h.Cursor.Kind == pauseAfterPrompt || h.Cursor.Kind == pauseEffect && h.Until.IsZero()
	if checkpoint || h.due(r.now()) || h.lapsed(r.now()) {
		r.resume = h.Cursor.ID
		return nil, nil
	}
	return h, nil
}

// checkSnapshot checks that nobody continued the hibernation of a snapshot.
func (r *runner) checkSnapshot(ctx context.Context, from Start) (*Hibernated, error) {
	l, err := projection.LoadSet(ctx, r.log, r.session, projection.Of("flow:pending", projection.Calls(), projection.Control()), projection.Options{At: from.place.seq})
	if err != nil {
		return nil, err
	}
	then, err := projection.PendingOf(ctx, r.log, l)
	if err != nil || !hibernates(&then) {
		return nil, err
	}
	cursor := then.Cursor.Cursor.ID
	consumed := func(p *event.TurnResumption) bool { return p.CursorID == cursor }
	_, seq, err := find(ctx, r.log, r.session, eventlog.Between(from.place.seq, r.live.Head.Seq), consumed, event.TurnResumed)
	if err != nil {
		return nil, err
	}
	if seq > 0 {
		return nil, fmt.Errorf("snapshot %q of session %q: event %d: %w", from.snapshot, r.session, seq, ErrConsumed)
	}
	now, err := r.pending(ctx)
	if err != nil {
		return nil, err
	}
	if hibernates(&now) && now.Cursor.Cursor.ID == cursor {
		return r.stillWaits(ctx, &now)
	}
	return nil, nil
}

// move moves the head for FromSnapshot and StartOptions.Retry, after the claim.
func (r *runner) move(ctx context.Context, from Start, o StartOptions) error {
	switch {
	case from.kind == startSnapshot:
		return r.moveTo(ctx, from.place)
	case o.Retry:
		return r.retry(ctx)
	}
	return nil
}

// moveTo moves the head to the place of a snapshot. A checkpoint there continues.
func (r *runner) moveTo(ctx context.Context, to place) error {
	_, err := fork.Rewind(ctx, r.log, r.session, to.point, fork.Options{Reason: "start from snapshot"})
	if err != nil && !errors.Is(err, fork.Error("no_move")) {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	if err := r.live.Follow(ctx); err != nil {
		return err
	}
	p, err := r.pending(ctx)
	if err == nil && p.Turn != nil {
		_, err = r.stillWaits(ctx, &p) // sets r.resume
	}
	return err
}

// retry moves the head to the end of the turn that failed last, before its
// turn_completed. The turn is open again then, with everything that it did but the errors
// of its last effects, which are taken back.
func (r *runner) retry(ctx context.Context) error {
	control, _ := projection.State(r.live, projection.Control())
	calls, _ := projection.State(r.live, projection.Calls())
	if len(control.Ended) == 0 {
		return fmt.Errorf("%w: session %q has no failed turn", ErrStart, r.session)
	}
	last := control.Ended[len(control.Ended)-1]
	if last.Status != event.TurnStatusFailed || calls.Turn != nil && calls.Turn.Seq > last.Seq {
		return fmt.Errorf("%w: the last turn of session %q did not fail", ErrStart, r.session)
	}
	started, err := fork.Resolve(ctx, r.log, r.session, fork.AtEvent(last.TurnID))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	rec, err := loadRecords(ctx, r.log, r.session, &projection.PathTurn{ID: last.TurnID, Seq: started.Seq}, event.Head{Seq: last.Seq}, nil)
	if err != nil {
		return err
	}
	events := []event.Event{event.New(event.HeadMove{To: last.Seq - 1, Reason: "retry"})}
	for _, x := range rec.failedLast() {
		if c := x.intent.Class; c != event.EffectPure && c != event.EffectIdempotent && c != event.EffectDedupe {
			return fmt.Errorf("%w: effect %s %q of the failed turn has the class %s: it does not run again; send the input again",
				ErrStart, x.ordinal, x.intent.Name, c)
		}
		again := *x.done
		again.RetryAt, again.Usage, again.Reason = r.now(), event.Usage{}, "retry"
		events = append(events, event.New(again))
	}
	return r.appendEvents(ctx, events...)
}

// resumed describes the turn that the runner continues.
func (r *runner) resumed(ctx context.Context) (Resumed, error) {
	w, err := r.nextWork(ctx)
	if err != nil {
		return Resumed{}, err
	}
	r.idle = w.kind == workNone
	if w.turn == nil {
		r.live.TakeTail() // no records are needed
		return Resumed{}, nil
	}
	branches, _ := projection.State(r.live, projection.Branches())
	return Resumed{Turn: w.turn.ID, Head: r.live.Head, Others: len(branches.Orphaned)}, nil
}
