package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Pending is a wait for something outside. Resolve ends it.
type Pending struct {
	ID string
	// Token names the session and the wait; see ParseToken.
	Token string
}

// newWait appends a wait, durably. If the turn is run again, it returns the same wait.
func (t *turn) newWait(ctx context.Context, name string, timeout time.Duration) (Pending, error) {
	if err := t.enter(ctx); err != nil {
		return Pending{}, err
	}
	defer t.leave()
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if err := t.compareStep(kindNewWait, false, 1); err != nil {
		return Pending{}, err
	}
	ordinal := strconv.Itoa(t.next)
	recorded, known := t.rec.shapeAt(ordinal)
	if known && recorded.name != name {
		if err := t.diverge(recorded.seq, ordinal, "name", recorded.name, name); err != nil {
			return Pending{}, err
		}
	}
	if known {
		if err := t.advance(ctx, t.rec.reached(t.next)); err != nil {
			return Pending{}, t.stopLocked(err)
		}
	}
	switch x := t.rec.at[ordinal]; {
	case known && recorded.inherited && x == nil && t.rec.awaited(recorded.wait):
		t.next++
		t.come(recorded.point)
		return t.pendingWait(recorded.wait)
	case x != nil && x.wait != nil:
		t.next++
		t.come(x.wait.point)
		return t.pendingWait(x.wait.start.WaitID)
	}
	return t.startWait(ctx, ordinal, name, timeout)
}

// startWait appends a new wait. A fork or a copy may have later records already.
func (t *turn) startWait(ctx context.Context, ordinal, name string, timeout time.Duration) (Pending, error) {
	w := event.Wait{WaitID: t.key(ordinal), TurnID: t.rec.turn, Ordinal: ordinal, Reason: name}
	if timeout > 0 {
		w.Until = t.r.now().Add(timeout)
	}
	e, err := t.playNewWait(&w)
	if err != nil {
		return Pending{}, err
	}
	if t.rec.step(t.next) {
		err = t.r.appendEvents(ctx, e)
	} else {
		err = t.record(ctx, func() ([]event.Event, error) { return []event.Event{e}, nil })
	}
	if err != nil {
		return Pending{}, t.failed(err)
	}
	at := t.r.newest(e.ID)
	t.rec.ordinal(ordinal, at.seq).wait = &waitRecord{start: w, seq: at.seq, point: at}
	t.next++
	t.come(at)
	return t.pendingWait(w.WaitID)
}

func (t *turn) pendingWait(id string) (Pending, error) {
	token, err := encodeToken("wait", Ref{Session: t.r.session, Wait: id}, t.r.options.Key)
	return Pending{ID: id, Token: token}, err
}

// Await returns the value that a wait was resolved with. Until then the turn hibernates.
// The error matches ErrExpired if the time of the wait ended, and ErrCanceled if somebody
// canceled it. It is ErrNotOpen for a wait of another turn.
func Await[T, S any](ctx context.Context, t *Turn[S], p Pending) (T, error) {
	var none T
	s, err := t.t.await(ctx, kindWait, []string{p.ID})
	if err != nil {
		return none, err
	}
	return decodeResult[T](t.t, s, kindWait)
}

// await waits for one of some waits. The name is the name of the effect: the wait that ended first is the result of
// firstName, and the value of a single wait the result of kindWait.
func (t *turn) await(ctx context.Context, name string, ids []string) (settled, error) {
	if err := t.enter(ctx); err != nil {
		return settled{}, err
	}
	defer t.leave()
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	x := &effect{spec: spec{kind: kindWait, name: name, arguments: awaitArguments(name, ids), class: event.EffectPure},
		ordinal: strconv.Itoa(t.next), attempt: 1, nonce: newNonce()}
	x.key, x.rec = t.key(x.ordinal), t.rec.at[x.ordinal]
	if err := t.compareStep(kindWait, false, 1); err != nil {
		return settled{}, err
	}
	if err := t.compare(x); err != nil {
		return settled{}, err
	}
	if err := x.recallWait(t.rec); err != nil {
		return settled{}, t.stopLocked(err)
	}
	if x.settled != nil {
		err := t.advance(ctx, t.rec.reached(t.next))
		t.next++
		t.come(x.settled.point)
		return *x.settled, err
	}
	if t.rec.step(t.next) {
		if err := t.advance(ctx, t.rec.reached(t.next)); err != nil {
			return settled{}, t.stopLocked(err)
		}
	}
	waits := make([]*waitRecord, len(ids))
	for i, id := range ids {
		if waits[i] = t.rec.openWait(id); waits[i] == nil {
			return settled{}, fmt.Errorf("wait %q: %w", id, ErrNotOpen)
		}
	}
	if name == firstName {
		return t.settleFirst(ctx, x, waits)
	}
	return t.settleWait(ctx, x, waits[0])
}

// recallWait sets the recorded result of an Await, if the log has it.
func (x *effect) recallWait(r *records) error {
	if x.rec == nil || x.rec.done == nil {
		return nil
	}
	return x.recallResult(r)
}

// settleWait records the end of a wait, or hibernates until it ends. The caller holds
// r.mu.
func (t *turn) settleWait(ctx context.Context, x *effect, w *waitRecord) (settled, error) {
	if t.r.player != nil {
		return t.playAwait(ctx, x)
	}
	for soon := true; soon && w.resolved == nil; {
		if err := t.refreshWait(ctx, w); err != nil {
			return settled{}, err
		}
		var err error
		if soon, err = t.waitShortly(ctx, w); err != nil {
			return settled{}, err
		}
	}
	var first []event.Event
	if w.resolved == nil {
		if w.start.Until.IsZero() || t.r.now().Before(w.start.Until) {
			return settled{}, t.hibernate(ctx, pause{kind: pauseWait, ordinal: x.ordinal, effect: x.key, effectKind: kindWait,
				waits: []string{w.start.WaitID}, until: w.start.Until})
		}
		first = w.expire()
	}
	return t.recordWait(ctx, x, w, first, outcome{result: w.resolved.Value}, w.failed())
}

// waitShortly waits in this process if the time of a wait ends soon: until then, or
// until another writer appends. It returns false if there is nothing to wait for.
func (t *turn) waitShortly(ctx context.Context, w *waitRecord) (bool, error) {
	if w.resolved != nil || w.start.Until.IsZero() {
		return false, nil
	}
	d := w.start.Until.Sub(t.r.now())
	if d <= 0 || d > t.r.options.InProcess {
		return false, nil
	}
	changed := t.r.changed
	t.r.mu.Unlock()
	defer t.r.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-changed:
		return true, nil
	case <-t.ctx.Done():
		return false, context.Cause(t.ctx)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// refreshWait looks for a resolution that came while the turn ran.
func (t *turn) refreshWait(ctx context.Context, w *waitRecord) error {
	if err := t.r.follow(ctx); err != nil {
		return t.stopLocked(err)
	}
	_, seq, err := find(ctx, t.r.log, t.r.session, eventlog.Between(w.seq+1, t.r.live.Head.Seq),
		func(p *event.Wait) bool { return p.WaitID == w.start.WaitID }, event.WaitResolved)
	if err != nil {
		return t.stopLocked(err)
	}
	if seq == 0 {
		return nil
	}
	e, err := t.r.log.Event(ctx, t.r.session, seq)
	if err != nil {
		return t.stopLocked(err)
	}
	p, err := decodeWait(&e)
	w.resolved, w.ended = &p, pointOf(&e)
	return err
}

// failed is the error of a wait that ended without a value.
func (w *waitRecord) failed() *event.EffectError {
	switch w.resolved.Outcome {
	case event.WaitWasResolved, "":
		return nil
	case event.WaitExpired:
		return &event.EffectError{Code: codeExpired, Message: "the time of the wait ended"}
	}
	return &event.EffectError{Code: codeCanceled, Message: "the wait was canceled"}
}

// recordWait appends the result of an effect that awaits w. The events of first end w.
func (t *turn) recordWait(ctx context.Context, x *effect, w *waitRecord, first []event.Event, o outcome, failed *event.EffectError) (settled, error) {
	made, done := t.completion(x, o, failed, 0)
	intent, err := t.intents(x)
	if err != nil {
		return settled{}, err
	}
	events := append(append(first, intent...), done)
	err = t.record(ctx, func() ([]event.Event, error) {
		if len(first) > 0 && !t.r.waitsFor(w.start.WaitID) {
			return nil, errAgain // somebody resolved the wait in the last instant
		}
		return events, nil
	})
	if err != nil {
		return settled{}, err
	}
	t.next++
	made.point = t.r.newest(done.ID)
	t.come(made.point)
	return *made, nil
}

// waitsFor reports whether a wait is open. The caller holds r.mu.
func (r *runner) waitsFor(id string) bool {
	calls, _ := projection.State(r.live, projection.Calls())
	return slices.ContainsFunc(calls.Waits, func(w projection.OpenWait) bool { return w.WaitID == id })
}

// sleep is a wait that nobody resolves.
func (t *turn) sleep(ctx context.Context, d time.Duration) error {
	p, err := t.newWait(ctx, "sleep", max(d, time.Nanosecond))
	if err != nil {
		return err
	}
	s, err := t.await(ctx, kindWait, []string{p.ID})
	if err != nil {
		return err
	}
	if err := s.failed("sleep"); !errors.Is(err, ErrExpired) {
		return err
	}
	return nil
}
