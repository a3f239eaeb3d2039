package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/raw"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/searchtext"
)

// run runs effects at the same time, at most limit at a time if limit > 0. It records each
// result when it is there.
func (t *turn) run(ctx context.Context, limit int, open []*effect) error {
	errs := make([]error, len(open))
	switch {
	case len(open) == 1:
		for again := true; again; {
			again, errs[0] = t.conclude(ctx, open[0], t.attempt(ctx, open[0]))
		}
	case limit <= 0 || limit > len(open):
		t.runMany(ctx, len(open), open, errs)
	default:
		t.runMany(ctx, limit, open, errs)
	}
	return t.runError(ctx, open, errs)
}

// runMany runs each attempt in a goroutine of its own, limit at a time. This goroutine
// records the results.
func (t *turn) runMany(ctx context.Context, limit int, open []*effect, errs []error) {
	type end struct {
		i int
		attempt
	}
	ended := make(chan end, len(open))
	var group sync.WaitGroup
	defer group.Wait() // also if Retry.If ends this goroutine
	begin := func(i int) {
		group.Go(func() {
			e := end{i, attempt{end: errGoexit}}
			defer func() { ended <- e }()
			e.attempt = t.attempt(ctx, open[i])
		})
	}
	for i := range limit {
		begin(i)
	}
	for next, running := limit, limit; running > 0; {
		e := <-ended
		again, err := t.conclude(ctx, open[e.i], e.attempt)
		errs[e.i] = err
		switch {
		case again:
			begin(e.i)
		case next < len(open):
			begin(next)
			next++
		default:
			running--
		}
	}
}

// runError is the error of a batch in which some effects have no result. If all of them
// wait for a later attempt, the turn hibernates.
func (t *turn) runError(ctx context.Context, open []*effect, errs []error) error {
	var due, blocked *effect
	for i, err := range errs {
		switch x := open[i]; {
		case err != nil:
			return err
		case x.settled != nil:
		case x.blocked:
			blocked = x
		case due == nil || x.due.Before(due.due):
			due = x
		}
	}
	if due == nil && blocked == nil {
		return nil
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if blocked != nil {
		return t.hibernate(ctx, pause{kind: pauseChild, ordinal: blocked.ordinal, effect: blocked.key, effectKind: blocked.kind})
	}
	return t.hibernate(ctx, pause{kind: pauseEffect, ordinal: due.ordinal, effect: due.key, effectKind: due.kind, until: due.due})
}

// attempt is an attempt of an effect that has ended.
type attempt struct {
	// run is nil if the attempt has no result to record: it did not begin, was interrupted,
	// or waits. end is the error then, if there is one.
	run    *running
	end    error
	o      outcome
	failed error
	took   time.Duration
}

// pauseFor waits for a time, unless the turn or ctx ends before.
func (t *turn) pauseFor(ctx context.Context, d time.Duration) error {
	ctx, cancel := t.joined(ctx)
	defer cancel()
	return sleep(ctx, d)
}

// joined is a context that ends with ctx and with the turn.
func (t *turn) joined(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == t.ctx {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// intendAgain appends the intent of another attempt.
func (t *turn) intendAgain(ctx context.Context, x *effect) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	x.due = time.Time{}
	events, err := t.intents(x)
	if err != nil {
		return err
	}
	ctx = engine.SetUnsynced(ctx, !x.needsSync())
	return t.record(ctx, func() ([]event.Event, error) { return events, nil })
}

// attempt runs an effect once. It waits before that if the attempt is not due. If it is due
// so late that the turn hibernates, attempt does nothing.
func (t *turn) attempt(ctx context.Context, x *effect) (a attempt) {
	defer catch(&a.end) // of the clock, or of the tracer
	if !x.due.IsZero() {
		wait := x.due.Sub(t.r.now())
		if wait > t.r.options.InProcess {
			return a
		}
		if a.end = t.pauseFor(ctx, wait); a.end == nil {
			a.end = t.intendAgain(ctx, x)
		}
	}
	if a.end == nil {
		a.end = t.alive(ctx)
	}
	if a.end != nil {
		return a
	}
	run := &running{turn: t, class: x.class, intent: x.intent, begun: x.begun, Running: Running{Session: t.r.session, Turn: t.rec.turn, Key: x.key, Ordinal: x.ordinal,
		Attempt: x.attempt, CallID: x.callID, Answer: x.answer}}
	run.effect = run
	begun := t.r.now()
	inner, cancel := t.joined(ctx)
	defer cancel()
	spanned, span := t.startAttempt(inner, x)
	a.o, a.failed = t.call(spanned, x, run)
	cancel()
	a.took = t.r.now().Sub(begun)
	t.endAttempt(spanned, span, x, a.o, a.failed, a.took)
	switch {
	case a.failed != nil && t.stopped(a.failed):
		a.end = t.alive(ctx)
	case run.blocked:
		x.blocked = true
	default:
		run.bodies = t.rawEvents(context.WithoutCancel(ctx), run)
		a.run = run
	}
	return a
}

// conclude records the end of an attempt. It reports whether another attempt follows.
func (t *turn) conclude(ctx context.Context, x *effect, a attempt) (again bool, err error) {
	defer catch(&err) // of Retry.If, or of a method of an error
	if a.run == nil {
		return false, a.end
	}
	err = t.recordAttempt(ctx, x, a.run, a.o, a.failed, a.took)
	if a.run.child != nil && x.settled != nil {
		t.r.childFinished(ctx)
	}
	return err == nil && x.settled == nil, err
}

// recordAttempt records the end of an attempt, unless it has none.
func (t *turn) recordAttempt(ctx context.Context, x *effect, run *running, o outcome, err error, took time.Duration) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	// The nested effect may be inside this one: corrected code runs it again. A child may
	// have left its turn open. After any other end of the execution the result is recorded,
	// since the effect ran.
	if t.halt != nil && (run.child != nil && err != nil || errors.Is(t.halt, ErrNestedEffect) && t.halt != errConcurrentEffect) {
		return t.halt
	}
	return t.finish(context.WithoutCancel(ctx), x, run, o, err, took)
}

// call calls the function of an effect, under the timeout of an attempt. A panic is an
// error.
func (t *turn) call(ctx context.Context, x *effect, run *running) (o outcome, err error) {
	if x.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, x.timeout, errTimeout)
		defer stop()
	}
	defer func() {
		if err != nil && context.Cause(ctx) == errTimeout {
			err = fmt.Errorf("%w after %v: %w", errTimeout, x.timeout, err)
		}
	}()
	defer catch(&err)
	return x.run(raw.With(context.WithValue(ctx, runningKey{}, run), &run.raw))
}

var errTimeout = errors.New("the attempt timed out")

// panicError is a panic of a function of the caller.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// catch turns a panic into an error. It must be deferred.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = &panicError{p}
	}
}

// stopped reports whether an effect failed because its runner stops. Then its outcome is
// unknown, and the intent stays open. If the turn function ended the context, the error is
// the result.
func (t *turn) stopped(err error) bool {
	return t.stopping() && !errors.Is(err, errTimeout) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// stopping reports whether the runner stops. The turn stays open then.
func (t *turn) stopping() bool { return t.ctx.Err() != nil && !t.isAborted() }

func (t *turn) isAborted() bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.aborted != nil
}

// finish records the end of an attempt: the result, or the time of the next attempt. The
// caller holds r.mu.
func (t *turn) finish(ctx context.Context, x *effect, run *running, o outcome, failed error, took time.Duration) error {
	before := t.state.doc
	if failed == nil {
		failed = t.applyUpdates(run)
	}
	if failed != nil {
		t.state.doc = before
		if delay, again := x.retryDelay(failed); again && t.aborted == nil {
			return t.fail(ctx, x, run, failed, delay)
		}
		o, run.added = outcome{usage: o.usage, cost: o.cost}, nil
	}
	change, err := t.stateChange()
	if err != nil {
		return err
	}
	made, done := t.completion(x, o, t.recordedError(failed), took, slices.Concat(run.after, run.added, change)...)
	events := slices.Concat(made.events, run.bodies, []event.Event{done})
	if err := t.r.appendEvents(ctx, events...); err != nil {
		return t.failed(err)
	}
	t.flushed()
	for i := range events {
		_ = t.rec.spent.count(&events[i]) // made by this package
	}
	t.rec.spent.use(o.usage)
	made.point = t.r.newest(done.ID)
	x.settled = made
	t.emit(made.events)
	if len(change) > 0 {
		return t.streamState(before)
	}
	return nil
}

func (t *turn) applyUpdates(run *running) (err error) {
	defer catch(&err)
	for _, f := range run.updates {
		doc, err := f(t.state.doc)
		if err != nil {
			return err
		}
		t.state.doc = doc
	}
	return nil
}

// completion makes the result of an effect, and its event. The events of the result and
// change are appended before it.
func (t *turn) completion(x *effect, o outcome, failed *event.EffectError, took time.Duration, change ...event.Event) (s *settled, done event.Event) {
	s = &settled{key: x.key}
	if x.spec.finish != nil {
		s.events = x.spec.finish(x.key, o, failed, took)
	}
	s.events = append(s.events, change...)
	s.done = &event.EffectCompletion{Key: x.key, TurnID: t.rec.turn, Ordinal: x.ordinal, Attempt: x.attempt, Usage: o.usage,
		EventIDs: outcomeIDs(s.events), Error: failed}
	if failed == nil {
		s.done.Result = o.result
	}
	done = event.New(*s.done)
	done.Cost = o.cost
	return s, done
}

// outcomeIDs are the ids of the events that are the outcome of an effect.
func outcomeIDs(events []event.Event) (ids []ulid.ULID) {
	for i := range events {
		if events[i].Type.Scope() == event.PathScope && events[i].Type.Name() != event.StepCompleted {
			ids = append(ids, events[i].ID)
		}
	}
	return ids
}

// recordedError is an error as it is recorded.
func (t *turn) recordedError(err error) *event.EffectError {
	var known *EffectError
	var panicked *panicError
	var reworded *rewordedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reworded):
		return &event.EffectError{Code: t.recordedError(reworded.err).Code, Message: clean(err)}
	case t.aborted != nil && errors.Is(err, context.Canceled):
		return &event.EffectError{Code: codeAborted, Message: ErrAborted.Error()}
	case errors.As(err, &known):
		return &event.EffectError{Code: known.Code, Message: known.Message}
	case errors.As(err, &panicked):
		return &event.EffectError{Code: codePanic, Message: clean(err)}
	case errors.Is(err, errTimeout):
		return &event.EffectError{Code: codeTimeout, Message: clean(err)}
	}
	return &event.EffectError{Code: codeFailed, Message: clean(err)}
}

func clean(err error) string { return searchtext.Clean(err.Error()) }

// fail records that an attempt failed, and when the next one is due.
func (t *turn) fail(ctx context.Context, x *effect, run *running, failed error, delay time.Duration) error {
	x.due = t.r.now().Add(delay)
	e := event.New(event.EffectCompletion{Key: x.key, TurnID: t.rec.turn, Ordinal: x.ordinal, Attempt: x.attempt,
		Error: t.recordedError(failed), RetryAt: x.due})
	if err := t.r.appendEvents(ctx, append(run.bodies, e)...); err != nil {
		return t.failed(err)
	}
	x.attempt++
	x.failures++
	return nil
}
