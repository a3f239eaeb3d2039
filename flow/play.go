package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
)

// play gives effects their recorded outcomes. None of them runs.
func (t *turn) play(ctx context.Context, many bool, effects []*effect) error {
	reviews, err := playedReviews(ctx, effects)
	if err != nil {
		return err
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if err := t.checkLimits(effects[0].kind == kindModel); err != nil {
		return err
	}
	return t.playLocked(ctx, &playback.Batch{Step: t.next - 1, Many: many, Calls: reviews}, effects)
}

// playedReviews are the calls of effects, with their reviews.
func playedReviews(ctx context.Context, effects []*effect) ([]playback.Call, error) {
	calls := make([]playback.Call, len(effects))
	for i, x := range effects {
		if x.review == nil {
			continue
		}
		r, err := x.review(ctx)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		calls[i].Review = &playback.Review{Prompt: r.Prompt, Lapse: r.Lapse}
		if r.Detail != nil {
			if calls[i].Review.Detail, err = encode(r.Detail); err != nil {
				return nil, fmt.Errorf("detail of the review of %q: %w", x.name, err)
			}
		}
	}
	return calls, nil
}

// playLocked is play of a batch with the reviews of its calls. The caller holds r.mu.
func (t *turn) playLocked(ctx context.Context, b *playback.Batch, effects []*effect) (err error) {
	for i, x := range effects {
		c := &b.Calls[i]
		c.Ordinal, c.Kind, c.Name, c.Arguments = x.ordinal, x.kind, x.name, x.arguments
		if x.request != nil {
			if c.Request, err = x.request(); err != nil {
				return err
			}
		}
	}
	o, err := t.r.player.Effects(b)
	if err != nil {
		return t.notPlayed(effects[0], err)
	}
	if err := t.playIntents(ctx, o, effects); err != nil {
		return err
	}
	for i := range o.Items {
		item := &o.Items[i]
		switch {
		case item.Abort != nil:
			t.abort(*item.Abort)
		case effects[item.Call].settled == nil:
			if err := t.playResult(ctx, effects[item.Call], item); err != nil {
				return err
			}
		}
	}
	switch {
	case len(unsettled(effects)) == 0:
		return nil
	case t.aborted != nil:
		return ErrAborted
	}
	return t.stopLocked(playback.ErrEnded)
}

// notPlayed is the error of effects without an outcome.
func (t *turn) notPlayed(first *effect, err error) error {
	switch {
	case errors.Is(err, playback.ErrLimit):
		return t.stopLocked(ErrLimit)
	case errors.Is(err, playback.ErrExpired):
		return fmt.Errorf("review of effect %q: %w", first.name, ErrExpired)
	}
	return t.stopLocked(err)
}

// playIntents appends the intents of the effects, if they began. An effect that a person
// answered has its result in the same append.
func (t *turn) playIntents(ctx context.Context, o *playback.Outcomes, effects []*effect) error {
	if o.Intents == nil {
		return nil
	}
	var events []event.Event
	var ended []func()
	for i, x := range effects {
		x.key, x.answer = o.Intents[i].Key, o.Intents[i].Answer
		x.nonce = cmp.Or(o.Intents[i].Nonce, x.nonce)
		made, err := t.intents(x)
		if err != nil {
			return err
		}
		o.Intents[i].Put(&made[0])
		events = append(events, made...)
		if _, _, ok := x.answered(); !ok {
			continue
		}
		for n := range o.Items {
			if item := &o.Items[n]; item.Abort == nil && item.Call == i {
				events = append(append(events, item.Events...), item.End)
				ended = append(ended, func() { t.settle(x, item) })
			}
		}
	}
	err := t.record(ctx, func() ([]event.Event, error) { return events, nil })
	if err == nil {
		for _, f := range ended {
			f()
		}
	}
	return err
}

// playResult appends a recorded result.
func (t *turn) playResult(ctx context.Context, x *effect, item *playback.Item) error {
	if x.kind == kindCompaction {
		if err := t.playCompaction(x, item); err != nil {
			return t.stopLocked(err)
		}
	}
	t.playDeltas(item.Events)
	if err := t.r.appendEvents(context.WithoutCancel(ctx), append(item.Events, item.End)...); err != nil {
		return t.failed(err)
	}
	before := t.state.doc
	if err := t.loadState(); err != nil {
		return t.stopLocked(err)
	}
	t.settle(x, item)
	if string(before) == string(t.state.doc) {
		return nil
	}
	return t.streamState(before)
}

// settle sets the result of an effect after its events were appended.
func (t *turn) settle(x *effect, item *playback.Item) {
	done, _, _ := event.Decode[event.EffectCompletion](&item.End) // the append has decoded it
	for i := range item.Events {
		_ = t.rec.spent.count(&item.Events[i]) // the append has decoded it
	}
	_ = t.rec.spent.count(&item.End)
	t.rec.spent.use(done.Usage)
	x.settled = &settled{key: x.key, done: &done, events: item.Events, point: point{seq: t.r.live.Head.Seq, id: item.End.ID, time: item.End.Timestamp}}
	t.emit(item.Events)
}

// playCompaction makes the events of a summary anew: the recorded ones have the seqs of the
// recording.
func (t *turn) playCompaction(x *effect, item *playback.Item) error {
	done, _, err := event.Decode[event.EffectCompletion](&item.End)
	if err != nil || done.Error != nil {
		return err
	}
	var summary string
	if err := json.Unmarshal(done.Result, &summary); err != nil {
		return err
	}
	o := outcome{answer: Response{Message: event.Message{Parts: []event.Part{event.Text(summary)}}}}
	mark := playback.Mark{ID: item.End.ID, Time: item.End.Timestamp}
	item.Events = x.spec.finish(x.key, o, nil, 0)
	done.EventIDs = outcomeIDs(item.Events)
	cost := item.End.Cost
	item.End = event.New(done)
	item.End.Cost = cost
	mark.Put(&item.End)
	return nil
}

// playDeltas gives the client the answer of a model, each part at once.
func (t *turn) playDeltas(events []event.Event) {
	for i := range events {
		m, ok, err := event.Decode[event.Message](&events[i])
		if !ok || err != nil || m.Role != event.Assistant {
			continue
		}
		emitParts(m.Parts, func(d eventlog.Delta) {
			d.Message, d.Attempt = events[i].ID, 1
			t.publish(d)
		})
	}
}

// playAwait is the recorded end of a wait. The caller holds r.mu.
func (t *turn) playAwait(ctx context.Context, x *effect) (settled, error) {
	if err := t.playLocked(ctx, &playback.Batch{Step: t.next, Calls: make([]playback.Call, 1)}, []*effect{x}); err != nil {
		return settled{}, err
	}
	t.next++
	t.come(x.settled.point)
	return *x.settled, nil
}

// playNewWait makes the event of a new wait, in a replay with the recorded ids.
func (t *turn) playNewWait(w *event.Wait) (event.Event, error) {
	if t.r.player == nil {
		return event.New(*w), nil
	}
	recorded, err := t.r.player.Wait(t.next, w.Reason)
	if err != nil {
		return event.Event{}, t.stopLocked(err)
	}
	w.WaitID = recorded.ID
	if !w.Until.IsZero() && !recorded.Until.IsZero() {
		w.Until = recorded.Until
	}
	e := event.New(*w)
	recorded.Put(&e)
	return e, nil
}

// playStart gives a turn the recorded ids.
func (r *runner) playStart(start *event.TurnStart, e *event.Event) error {
	if r.player == nil {
		return nil
	}
	b, err := r.player.Begin(start.InputID)
	if err != nil {
		return err
	}
	start.SnapshotID = b.Snapshot
	*e = event.New(*start)
	b.Put(e)
	return nil
}

// playEnd compares the end of the turn function with the recording.
func (t *turn) playEnd(failed error) {
	if t.r.player == nil || t.halt != nil && !errors.Is(t.halt, ErrLimit) && !errors.Is(t.halt, ErrAborted) {
		return
	}
	if err := t.r.player.End(t.next, failed, t.aborted != nil); err != nil {
		t.halt, t.aborted = err, nil
	}
}

// played describes the request. The caller holds r.mu.
func (c *modelCall) played() (*playback.Request, error) {
	c.complete()
	if c.err != nil {
		return nil, c.err
	}
	d, _ := c.digest() // a request that does not encode has none
	return &playback.Request{Prompt: c.prompt(), Messages: c.request.Messages, Given: c.given, Digest: d}, nil
}

// played describes the request. The caller holds r.mu.
func (c *compactionCall) played() (*playback.Request, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &playback.Request{Prompt: promptOf(&c.request), Messages: c.request.Messages}, nil
}
