package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// effect is one effect of a batch.
type effect struct {
	spec
	ordinal string
	key     string
	rec     *record // nil if the log has none
	attempt int     // the next attempt
	// failures is the number of attempts that failed. Attempts that a kill or a hibernation
	// ended do not count.
	failures int
	nonce    string
	answer   *event.ApprovalResolution
	lapsed   string // the review that nobody answered in time
	// settled is the recorded result, nil while there is none.
	settled *settled
	// due is the time of the next attempt, after one that failed. blocked reports that the
	// attempt ran a child that waits.
	due     time.Time
	blocked bool
	intent  ulid.ULID // the event of the attempt
	begun   int64     // the last seq of the append of the first attempt
}

// batch runs the effects that have no recorded result, and returns all results.
func (t *turn) batch(ctx context.Context, many bool, limit int, specs []spec) ([]settled, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	effects, err := t.prepare(ctx, many, specs)
	if err != nil {
		return nil, err
	}
	if t.r.player != nil {
		if err := t.play(ctx, many, effects); err != nil {
			return nil, err
		}
	} else if open := unsettled(effects); len(open) > 0 {
		if err := t.admit(ctx, many, effects, open); err != nil {
			return nil, err
		}
		if err := t.run(ctx, limit, unsettled(open)); err != nil {
			return nil, err
		}
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	results := make([]settled, len(effects))
	for i, x := range effects {
		results[i] = *x.settled
	}
	newest := slices.MaxFunc(results, func(a, b settled) int { return cmp.Compare(a.point.seq, b.point.seq) })
	t.come(newest.point)
	return results, nil
}

func unsettled(effects []*effect) (open []*effect) {
	for _, x := range effects {
		if x.settled == nil {
			open = append(open, x)
		}
	}
	return open
}

// prepare compares the effects with their records, and takes the next ordinal. Nothing
// has run when it returns an error.
func (t *turn) prepare(ctx context.Context, many bool, specs []spec) ([]*effect, error) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	n := t.next
	effects := make([]*effect, len(specs))
	if err := t.compareStep(specs[0].kind, many, len(specs)); err != nil {
		return nil, err
	}
	for i, ordinal := range ordinals(n, len(specs), many) {
		x := &effect{spec: specs[i], ordinal: ordinal, attempt: 1, rec: t.rec.at[ordinal]}
		x.class = cmp.Or(x.class, event.EffectIdempotent)
		if x.class == event.EffectUnsafeOnce && !x.reviewed {
			return nil, t.stopLocked(fmt.Errorf("effect %q: %w", x.name, errNoReview))
		}
		if err := t.compare(x); err != nil {
			return nil, err
		}
		if err := x.recall(t.rec); err != nil {
			return nil, t.stopLocked(fmt.Errorf("session %q: effect %s %q: %w", t.r.session, ordinal, x.name, err))
		}
		if x.settled == nil && x.key == "" {
			x.key, x.nonce = t.key(ordinal), newNonce()
		}
		effects[i] = x
	}
	if err := t.recall(ctx, effects); err != nil {
		return nil, t.stopLocked(err)
	}
	if t.rec.step(n) {
		if err := t.advance(ctx, t.rec.reached(n)); err != nil {
			return nil, t.stopLocked(err)
		}
	}
	t.next++
	return effects, nil
}

// recall prepares effects that began and run again: the request of a model has the history
// that its first attempt saw, and not the messages that other writers appended since.
func (t *turn) recall(ctx context.Context, effects []*effect) error {
	x := effects[0]
	if x.spec.recall == nil || x.rec == nil || x.settled != nil || x.rec.seen == 0 || t.view == nil {
		return nil
	}
	if err := t.foldUpTo(ctx, x.rec.seen); err != nil {
		return err
	}
	x.spec.recall()
	return nil
}

// replay returns the recorded result of the next effect, if the record is of e with the
// same arguments. It returns nil in all other cases, which batch decides.
func (t *turn) replay(ctx context.Context, e *Effect) (*settled, error) {
	if t.r.player != nil {
		return nil, nil
	}
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	x := t.rec.single(t.next)
	if x == nil || x.done == nil || x.intent == nil || !e.intendedBy(x.intent) {
		return nil, nil
	}
	s, err := t.rec.result(x)
	if err != nil {
		return nil, nil // batch returns it
	}
	if err := t.advance(ctx, t.rec.reached(t.next)); err != nil {
		return nil, t.stopLocked(err)
	}
	t.next++
	t.come(s.point)
	return s, nil
}

// intendedBy reports whether an intent is of the effect, with the same arguments.
func (e *Effect) intendedBy(i *event.EffectIntent) bool {
	if i.Kind != kindEffect || i.Name != e.Name || e.Class == event.EffectUnsafeOnce {
		return false
	}
	arguments, err := encode(e.Arguments)
	return err == nil && intendedWith(i, arguments)
}

// recall sets the result of the effect from its record, or says whether an effect that
// began may run again.
func (x *effect) recall(r *records) error {
	switch {
	case x.rec == nil:
		return nil
	case x.rec.done != nil:
		return x.recallResult(r)
	case x.rec.intent == nil:
		return nil
	case x.rec.review != nil && x.rec.review.erased && !x.rec.inherited:
		return fmt.Errorf("the answer to its review was erased: %w", ErrNeedsReconcile)
	case !x.rec.retryAt.IsZero() && x.rec.inherited: // a person said that it did not run
		return nil
	case !x.rec.retryAt.IsZero(): // the attempt ended
		x.key, x.attempt, x.due, x.nonce, x.begun = x.rec.intent.Key, x.rec.intent.Attempt+1, x.rec.retryAt, x.rec.intent.Nonce, x.rec.begun
		x.failures = x.rec.failures
		return nil
	}
	return x.again()
}

// careful returns the class that allows less. A class that is not known allows nothing.
func careful(a, b event.EffectClass) event.EffectClass {
	for _, class := range []event.EffectClass{event.EffectPure, event.EffectIdempotent, event.EffectDedupe, event.EffectReconcile} {
		switch class {
		case a:
			return b
		case b:
			return a
		}
	}
	return event.EffectUnsafeOnce
}

func (x *effect) recallResult(r *records) (err error) {
	x.settled, err = r.result(x.rec)
	return err
}

// again decides about an effect that began and has no result, by the more careful one of the
// class in the log and the class in the code. An effect of another session, in a fork or a copy, gets a key and an intent of its own.
func (x *effect) again() error {
	class := careful(x.rec.intent.Class, x.class)
	switch {
	case class == event.EffectPure, class == event.EffectIdempotent, class == event.EffectDedupe && !x.rec.inherited:
		if !x.rec.inherited {
			x.key, x.attempt, x.nonce, x.begun = x.rec.intent.Key, x.rec.intent.Attempt+1, x.rec.intent.Nonce, x.rec.begun
			x.failures = x.rec.failures
		}
		return nil
	}
	return fmt.Errorf("the effect of class %s began and has no result: %w", class, ErrNeedsReconcile)
}

// admit asks for the reviews of the effects without a result, and appends their intents.
func (t *turn) admit(ctx context.Context, many bool, effects, open []*effect) error {
	if err := t.atCheckpoint(ctx, many, effects); err != nil {
		return err
	}
	asked := make([]*Question, len(open))
	for i, x := range open {
		if x.review == nil || x.rec != nil && x.rec.intent != nil && !x.rec.inherited {
			continue
		}
		var err error
		if asked[i], err = x.review(ctx); err != nil {
			return err
		}
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if err := t.checkLimits(open[0].kind == kindModel); err != nil {
		return err
	}
	if err := t.awaitReviews(ctx, open, asked); err != nil {
		return err
	}
	return t.intend(ctx, open)
}

// intend appends the intents of effects. An effect that a person answered gets its result
// in the same append. The caller holds r.mu.
func (t *turn) intend(ctx context.Context, open []*effect) error {
	if !t.replaying() {
		t.goLive() // a new call of a model has the events of other writers
	}
	var events []event.Event
	var last *effect // the last one with an answer instead of a result
	var lastID ulid.ULID
	for _, x := range open {
		if !x.due.IsZero() {
			continue // its next attempt appends an intent
		}
		made, err := t.intents(x)
		if err != nil {
			return err
		}
		events = append(events, made...)
		if o, failed, ok := x.answered(); ok {
			made, done := t.completion(x, o, failed, 0)
			events = append(append(events, made.events...), done)
			x.settled, last, lastID = made, x, done.ID
		}
	}
	if len(events) == 0 {
		return nil
	}
	ctx = engine.SetUnsynced(ctx, !slices.ContainsFunc(open, (*effect).needsSync))
	if err := t.record(ctx, func() ([]event.Event, error) { return events, t.checkLapsed(open) }); err != nil {
		return err
	}
	for _, x := range open {
		if x.begun == 0 {
			x.begun = t.r.live.Head.Seq
		}
	}
	if last != nil { // if no effect runs after it, its result is the newest event
		last.settled.point = t.r.newest(lastID)
	}
	return nil
}

// needsSync reports whether the intent of the effect must be on disk before the effect runs: the
// class forbids to run the effect again without a trace, a person has allowed it once, or the intent comes
// with a result.
func (x *effect) needsSync() bool {
	again := x.class == event.EffectPure || x.class == event.EffectIdempotent
	return !again || x.reviewed || x.answer != nil || x.settled != nil
}

// intents are the intent of the next attempt and the events that follow the first one.
func (t *turn) intents(x *effect) ([]event.Event, error) {
	digest, err := event.ArgumentsDigest(x.nonce, orNull(x.arguments))
	if err != nil {
		return nil, fmt.Errorf("arguments of effect %q: %w", x.name, err)
	}
	p := event.EffectIntent{Key: x.key, TurnID: t.rec.turn, Ordinal: x.ordinal, Kind: x.kind, Name: x.name, Class: x.class,
		Attempt: x.attempt, Nonce: x.nonce, ArgumentsDigest: digest, Arguments: x.arguments}
	if x.answer != nil {
		p.InterruptID = x.answer.InterruptID
		if x.answer.Arguments != nil {
			p.Arguments = x.answer.Arguments
		}
	}
	events := []event.Event{event.New(p)}
	x.intent = events[0].ID
	if x.attempt == 1 && x.started != nil {
		events = append(events, x.started(x.key)...)
	}
	return events, nil
}
