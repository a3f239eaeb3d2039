package flow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// firstName is the name of the effect of First.
const firstName = "first"

// first is the first wait of several that ended, by its id.
func (t *turn) first(ctx context.Context, waits []Pending) (Pending, error) {
	var ids []string
	for _, p := range waits {
		if !slices.Contains(ids, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return Pending{}, fmt.Errorf("the first of no waits: %w", ErrNotOpen)
	}
	s, err := t.await(ctx, firstName, ids)
	if err != nil {
		return Pending{}, err
	}
	if err := s.failed(firstName); err != nil {
		return Pending{}, err
	}
	var id string
	if err := json.Unmarshal(s.done.Result, &id); err != nil {
		return Pending{}, t.undecodable(&s, id, err)
	}
	won := slices.IndexFunc(waits, func(p Pending) bool { return p.ID == id })
	if won < 0 {
		return Pending{}, t.undecodable(&s, id, fmt.Errorf("the call has no such wait"))
	}
	return waits[won], nil
}

// settleFirst records which of several waits ended first, or hibernates until one ends. The
// caller holds r.mu.
func (t *turn) settleFirst(ctx context.Context, x *effect, waits []*waitRecord) (settled, error) {
	if t.r.player != nil {
		return t.playAwait(ctx, x)
	}
	for {
		for _, w := range waits {
			if w.resolved != nil {
				continue
			}
			if err := t.refreshWait(ctx, w); err != nil {
				return settled{}, err
			}
		}
		now := t.r.now()
		if won := endedFirst(waits, now); won != nil {
			first := won.expire()
			return t.recordWait(ctx, x, won, first, outcome{result: quoted(won.start.WaitID)}, nil)
		}
		next := slices.MinFunc(waits, func(a, b *waitRecord) int { return compareUntil(a.start.Until, b.start.Until) })
		soon, err := t.waitShortly(ctx, next)
		if err != nil {
			return settled{}, err
		}
		if !soon {
			p := pause{kind: pauseWait, ordinal: x.ordinal, effect: x.key, effectKind: kindWait, name: x.name, until: next.start.Until}
			for _, w := range waits {
				p.waits = append(p.waits, w.start.WaitID)
			}
			return settled{}, t.hibernate(ctx, p)
		}
	}
}

// expire ends a wait whose time ended, and returns the event of it.
func (w *waitRecord) expire() []event.Event {
	if w.resolved != nil {
		return nil
	}
	w.resolved = &event.Wait{Resolved: true, WaitID: w.start.WaitID, Outcome: event.WaitExpired}
	return []event.Event{event.New(*w.resolved)}
}

// endedFirst is the wait that ended before the others: at its answer, or at the end of its time. It is nil if all
// are open.
func endedFirst(waits []*waitRecord, now time.Time) (first *waitRecord) {
	var at time.Time
	for _, w := range waits {
		end := w.start.Until
		switch {
		case w.resolved != nil:
			end = w.ended.time
		case end.IsZero() || now.Before(end):
			continue
		}
		if first == nil || end.Before(at) || end.Equal(at) && w.ended.seq < first.ended.seq {
			first, at = w, end
		}
	}
	return first
}

// compareUntil orders the ends of waits; zero is never.
func compareUntil(a, b time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case earliest(a, b).Equal(a):
		return -1
	}
	return 1
}
