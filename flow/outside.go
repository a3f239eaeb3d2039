package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Answer answers a review. It names the review, the effect and the arguments that the
// person saw.
type Answer struct {
	// Review is the open review, as Hibernated and RunInfo have it. Its InterruptID, EffectID
	// and ArgumentsDigest count: Decide compares them.
	Review   projection.OpenApproval
	Decision event.Decision
	// Arguments replace the arguments of the effect, if the decision is event.Approved; nil
	// keeps them.
	Arguments jsontext.Value
	// Value is the result of the effect, if the decision is event.Answered.
	Value any
	// By is the person who decided, and Reason why. The model gets the reason of a denied
	// tool call.
	By, Reason string
}

// Decide records answers to reviews of a session, all or none. It may be called by any
// process. The first answer to a review counts. The errors are ErrNotOpen, ErrAnswered,
// ErrMismatch, ErrExpired (the last instant is in time), *HomeError in a copy of the store, and
// event.ErrInvalid.
//
// An answer to a review of a child is recorded in the child's session, after the answers
// to the reviews of the session itself.
func Decide(ctx context.Context, log *eventlog.Log, session string, answers ...Answer) (event.Head, error) {
	var below map[string][]Answer
	head, err := change(ctx, log, session, func(s *outside) ([]event.Event, error) {
		below = map[string][]Answer{}
		if err := s.atHome(ctx); err != nil {
			return nil, err
		}
		var events []event.Event
		for _, a := range answers {
			e, err := s.decide(ctx, a)
			var child *reviewOfChild
			switch {
			case errors.As(err, &child):
				below[child.session] = append(below[child.session], a)
			case err != nil:
				return nil, fmt.Errorf("review %q of session %q: %w", a.Review.InterruptID, session, err)
			default:
				events = append(events, e)
			}
		}
		return events, nil
	})
	for _, child := range slices.Sorted(maps.Keys(below)) {
		if err == nil {
			_, err = Decide(ctx, log, child, below[child]...)
		}
	}
	return head, err
}

// reviewOfChild returns a *reviewOfChild if a child of the session asked a review, else
// ErrNotOpen.
func (s *outside) reviewOfChild(ctx context.Context, interrupt string) error {
	asked := func(p *event.Child) bool { return p.InterruptID == interrupt }
	p, seq, err := find(ctx, s.log, s.session, eventlog.Between(0, s.loaded.Head.Seq).Backward(), asked, event.ChildBlocked.Type())
	if err != nil || seq == 0 || interrupt == "" {
		return cmp.Or(err, ErrNotOpen)
	}
	children, _ := projection.State(s.loaded, projection.Children())
	if !slices.ContainsFunc(children.Runs, func(r projection.ChildRun) bool { return r.SessionID == p.ChildSessionID }) {
		return ErrNotOpen
	}
	return &reviewOfChild{p.ChildSessionID}
}

// reviewOfChild says that a review belongs to a child session.
type reviewOfChild struct{ session string }

func (e *reviewOfChild) Error() string {
	return fmt.Sprintf("the review is of child session %q", e.session)
}

// Resolve ends a wait with a value. The errors are ErrNotOpen, ErrAnswered, ErrExpired, and
// *HomeError in a copy of the store.
func Resolve(ctx context.Context, log *eventlog.Log, session, wait string, value any, by string) (event.Head, error) {
	raw, err := encode(value)
	if err != nil {
		return event.Head{}, err
	}
	return change(ctx, log, session, func(s *outside) ([]event.Event, error) {
		if err := s.atHome(ctx); err != nil {
			return nil, err
		}
		if err := s.checkWait(ctx, wait); err != nil {
			return nil, fmt.Errorf("wait %q of session %q: %w", wait, session, err)
		}
		return []event.Event{event.New(event.Wait{Resolved: true, WaitID: wait, Outcome: event.WaitWasResolved, By: by, Value: raw})}, nil
	})
}

// Outcome is the outcome of an effect, as a person found it. It does not change the
// custom state: an Update that the effect called before it was interrupted is lost.
type Outcome struct {
	// Result or Err is the result of the effect. The model gets the Result of a tool call as
	// a text: a string as it is, any other value as JSON.
	Result any
	Err    error
	// DidNotRun says that the effect did not happen: it runs again.
	DidNotRun  bool
	By, Reason string
}

// Reconcile records the outcome of an effect that began and has no result. It is
// ErrNotOpen if the session has no such effect, ErrAlreadyRunning while a runner is alive, and a
// *HomeError in a copy of the store.
func Reconcile(ctx context.Context, log *eventlog.Log, session, key string, o Outcome) (event.Head, error) {
	return change(ctx, log, session, func(s *outside) ([]event.Event, error) {
		if err := checkAlone(ctx, log, session, s.pending.Claim); err != nil {
			return nil, err
		}
		if err := s.atHome(ctx); err != nil {
			return nil, err
		}
		for _, x := range s.pending.Effects {
			if x.Key == key {
				return s.reconciliation(ctx, &x, o)
			}
		}
		return nil, fmt.Errorf("effect %q of session %q: %w", key, session, ErrNotOpen)
	})
}

func (s *outside) reconciliation(ctx context.Context, x *projection.OpenEffect, o Outcome) ([]event.Event, error) {
	p := event.EffectCompletion{Key: x.Key, TurnID: x.TurnID, Ordinal: x.Ordinal, Attempt: x.Attempt, By: o.By, Reason: o.Reason}
	switch {
	case o.DidNotRun:
		p.RetryAt, p.Error = time.Now().UTC(), &event.EffectError{Code: "did_not_run", Message: "the effect did not run"}
	case o.Err != nil:
		p.Error = &event.EffectError{Code: codeFailed, Message: clean(o.Err)}
	default:
		var err error
		if p.Result, err = encode(o.Result); err != nil {
			return nil, err
		}
	}
	return s.outcomeEvents(ctx, x, p)
}

// Abort asks to end the open turn of a session. If no runner is alive, it ends the turn
// itself, and a turn whose runner was killed before it could end it. before is the status
// before; if no such turn exists, nothing happens.
func Abort(ctx context.Context, log *eventlog.Log, session string, a event.Abort) (before Status, err error) {
	_, err = change(ctx, log, session, func(s *outside) ([]event.Event, error) {
		info, err := infoOf(ctx, log, s.loaded)
		if err != nil {
			return nil, err
		}
		before = info.Status
		turn := info.Turn
		if turn == nil && info.Aborted != nil && isFlowTurn(info.Aborted) {
			turn = info.Aborted
		}
		if turn == nil || !a.TurnID.IsZero() && a.TurnID != turn.ID {
			return nil, nil
		}
		a.TurnID = turn.ID
		var events []event.Event
		if info.Turn != nil {
			events = append(events, event.New(a))
		}
		if info.Runner != "" {
			return events, nil
		}
		canceled, err := abortChildren(ctx, log, &info.Pending, a)
		if err != nil {
			return nil, err
		}
		events = append(events, canceled...)
		for _, r := range info.Approvals {
			if r.TurnID == turn.ID && r.SessionID == "" {
				events = append(events, event.New(event.ApprovalCancelation{InterruptID: r.InterruptID, Reason: "aborted"}))
			}
		}
		calls, _ := projection.State(s.loaded, projection.Calls())
		events = append(events, interrupt(calls.Calls)...)
		return append(events, event.New(event.TurnCompletion{TurnID: a.TurnID, Status: event.TurnStatusAborted, StopReason: "aborted", Error: a.Reason})), nil
	})
	return before, err
}

// outside is the state of a session for a decision that is not the runner's.
type outside struct {
	log     *eventlog.Log
	session string
	loaded  *projection.Loaded
	pending projection.Pending
	now     time.Time
}

// atHome returns a *HomeError if the open turn belongs to another store: an answer in a copy
// would not reach it.
func (s *outside) atHome(ctx context.Context) error {
	if s.pending.Home == "" {
		return nil
	}
	store, err := s.log.StoreID(ctx)
	if err != nil {
		return err
	}
	return checkHome(s.session, store, &projection.Pending{Home: s.pending.Home}, true)
}

var outsideSet = projection.Of("flow:outside", projection.Calls(), projection.Control(), projection.Info(), projection.Children())

// change appends the events that decide makes of the newest state, durably. If another
// writer appends meanwhile, it decides again. No events change nothing.
func change(ctx context.Context, log *eventlog.Log, session string, decide func(s *outside) ([]event.Event, error)) (event.Head, error) {
	for {
		l, err := projection.LoadSet(ctx, log, session, outsideSet)
		if err != nil {
			return event.Head{}, err
		}
		p, err := projection.PendingOf(ctx, log, l)
		if err != nil {
			return event.Head{}, err
		}
		events, err := decide(&outside{log: log, session: session, loaded: l, pending: p, now: time.Now()})
		if err != nil || len(events) == 0 {
			return l.Head, err
		}
		var head event.Head
		err = eventlog.UntilKnown(ctx, func() error {
			head, err = log.Append(ctx, session, eventlog.At(l.Head).Durable(), events...)
			return err
		})
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		return head, err
	}
}

// decide checks an answer and makes its event.
func (s *outside) decide(ctx context.Context, a Answer) (event.Event, error) {
	for _, r := range s.pending.Approvals {
		if r.InterruptID != a.Review.InterruptID {
			continue
		}
		if err := s.checkAnswer(&r, &a); err != nil {
			return event.Event{}, err
		}
		value, err := encode(a.Value)
		if err != nil {
			return event.Event{}, err
		}
		if a.Value == nil {
			value = nil
		}
		return event.New(event.ApprovalResolution{InterruptID: a.Review.InterruptID, EffectID: r.EffectID, ArgumentsDigest: r.ArgumentsDigest,
			Decision: a.Decision, By: a.By, Reason: a.Reason, Arguments: a.Arguments, Answer: value}), nil
	}
	answers := func(p *event.ApprovalResolution) bool { return p.InterruptID == a.Review.InterruptID }
	err := whyNotOpen(ctx, s, answers, event.ApprovalResolved, event.ApprovalCanceled)
	if err == ErrNotOpen {
		err = s.reviewOfChild(ctx, a.Review.InterruptID)
	}
	return event.Event{}, err
}

func (s *outside) checkAnswer(r *projection.OpenApproval, a *Answer) error {
	switch {
	case a.Review.EffectID != r.EffectID || a.Review.ArgumentsDigest != r.ArgumentsDigest:
		return ErrMismatch
	case !r.ExpiresAt.IsZero() && s.now.After(r.ExpiresAt):
		return fmt.Errorf("%w at %s", ErrExpired, r.ExpiresAt.Format(time.RFC3339))
	case a.Decision != event.Approved && a.Arguments != nil:
		return fmt.Errorf("%w: only an approval has arguments", event.ErrInvalidPayload)
	case a.Decision == event.Denied && a.Value != nil:
		return fmt.Errorf("%w: a denial has no value", event.ErrInvalidPayload)
	}
	return nil
}

// whyNotOpen is ErrAnswered if an own event of the session matches, else ErrNotOpen.
func whyNotOpen[T any](ctx context.Context, s *outside, match func(*T) bool, types ...event.Type) error {
	_, seq, err := find(ctx, s.log, s.session, eventlog.Between(0, s.loaded.Head.Seq).Backward(), match, types...)
	if err == nil && seq > 0 {
		return ErrAnswered
	}
	return cmp.Or(err, ErrNotOpen)
}

// find returns the first event of some types whose payload matches. seq is 0 if the range
// has none.
func find[T any](ctx context.Context, log *eventlog.Log, session string, r eventlog.Range, match func(*T) bool, types ...event.Type) (p T, seq int64, err error) {
	for e, err := range log.Read(ctx, session, r) {
		if err == nil && !slices.Contains(types, e.Type.Name()) {
			continue
		}
		if err == nil {
			p, err = event.DecodeKept[T](&e)
		}
		if err != nil || match(&p) {
			return p, e.Seq, err
		}
	}
	return p, 0, nil
}

func (s *outside) checkWait(ctx context.Context, id string) error {
	for _, w := range s.pending.Waits {
		if w.WaitID == id {
			if !w.Until.IsZero() && s.now.After(w.Until) {
				return fmt.Errorf("%w at %s", ErrExpired, w.Until.Format(time.RFC3339))
			}
			return nil
		}
	}
	return whyNotOpen(ctx, s, func(p *event.Wait) bool { return p.WaitID == id }, event.WaitResolved)
}

// outcomeEvents are the events of a reconciled effect. If it is a tool call, they tell the
// model the result.
func (s *outside) outcomeEvents(ctx context.Context, x *projection.OpenEffect, p event.EffectCompletion) ([]event.Event, error) {
	if x.Kind != kindTool || !p.RetryAt.IsZero() {
		return []event.Event{event.New(p)}, nil
	}
	call, err := s.callOf(ctx, x)
	if err != nil || call == "" {
		return []event.Event{event.New(p)}, err
	}
	var o outcome
	if p.Error == nil {
		o.parts, p.Result = []event.Part{event.Text(textOf(p.Result))}, nil
	}
	c := toolCall{call: event.ToolCall(call, x.Name, nil)}
	events := c.finish(x.Key, o, p.Error, 0)
	p.EventIDs = outcomeIDs(events)
	return append(events, event.New(p)), nil
}

// callOf is the id of the pending call that an effect runs, empty if it is not pending.
func (s *outside) callOf(ctx context.Context, x *projection.OpenEffect) (string, error) {
	if s.pending.Turn == nil {
		return "", nil
	}
	p, seq, err := find(ctx, s.log, s.session, eventlog.Between(s.pending.Turn.Seq, s.loaded.Head.Seq), func(p *event.ToolStart) bool {
		pending := func(c projection.PendingCall) bool { return c.CallID == p.CallID }
		return p.IdempotencyKey == x.Key && slices.ContainsFunc(s.pending.Calls, pending)
	}, event.ToolStarted)
	if err != nil || seq == 0 {
		return "", err
	}
	return p.CallID, nil
}
