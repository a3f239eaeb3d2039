package flow

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// loadRecords reads the events of an open turn. tail are the newest events of the session,
// which are not read again.
func loadRecords(ctx context.Context, log *eventlog.Log, session string, t *projection.PathTurn, head event.Head, tail []event.Event) (r *records, err error) {
	err = bounded(ctx, func() error {
		r, err = readRecords(ctx, log, session, t, head, tail)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read turn %s of session %q: %w", t.ID, session, err)
	}
	return r, nil
}

func readRecords(ctx context.Context, log *eventlog.Log, session string, t *projection.PathTurn, head event.Head, tail []event.Event) (*records, error) {
	r := newRecords(session, t.ID, t.Seq)
	if err := r.readStart(r.backward(ctx, log, tail)); err != nil {
		return nil, err
	}
	if n := len(tail); n > 0 {
		tail = tail[max(int64(n)-(head.Seq-t.Seq), 0):]
	}
	if missing := head.Seq - int64(len(tail)); missing > t.Seq {
		for e, err := range log.Read(ctx, session, eventlog.Between(t.Seq+1, missing)) {
			if err == nil {
				r.events = append(r.events, e)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if r.events == nil {
		r.events = tail
	} else {
		r.events = append(r.events, tail...)
	}
	effects := len(r.events) / 2 // an intent and a result each
	r.at, r.tops = make(map[string]*record, effects), make(map[int]*top, effects)
	for i := range r.events {
		if err := r.add(i); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// backward yields the turn_started and the events before it, newest first. It yields no
// more than tail if tail has the whole append of the turn_started.
func (r *records) backward(ctx context.Context, log *eventlog.Log, tail []event.Event) iter.Seq2[event.Event, error] {
	if len(tail) > 0 && tail[0].Seq < r.seq {
		first := tail[:r.seq-tail[0].Seq]
		if slices.ContainsFunc(first, func(e event.Event) bool { return e.More() == 0 }) {
			return func(yield func(event.Event, error) bool) {
				for n := len(first); n >= 0 && yield(tail[n], nil); n-- {
				}
			}
		}
	}
	return log.Read(ctx, r.session, eventlog.Between(0, r.seq).Backward())
}

// readStart reads the turn_started and the messages of its append from events, which are
// newest first.
func (r *records) readStart(events iter.Seq2[event.Event, error]) error {
	r.before = r.seq - 1
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Seq == r.seq {
			start, err := event.DecodeKept[event.TurnStart](&e)
			if err != nil {
				return err
			}
			r.start, r.input.ID, r.point, r.ownStart = start, start.InputID, pointOf(&e), r.own(&e)
			r.spent.since = e.Timestamp
			continue
		}
		if e.More() == 0 {
			return nil
		}
		r.before = e.Seq - 1
		if err := r.readInput(&e); err != nil {
			return err
		}
	}
	return nil
}

func (r *records) readInput(e *event.Event) error {
	if e.Type.Name() != event.MessageAdded || e.Redacted() {
		return nil
	}
	m, _, err := event.Decode[event.Message](e)
	if err == nil && m.InputID == r.start.InputID && m.InputID != "" {
		r.input.Messages = slices.Insert(r.input.Messages, 0, m)
	}
	return err
}

// add adds event i.
func (r *records) add(i int) error {
	if e := r.events[i].Effective(); e != &r.events[i] {
		r.events[i] = *e
	}
	e := &r.events[i]
	r.spent.pass(e)
	if err := r.spent.count(e); err != nil {
		return err
	}
	name := e.Type.Name()
	if name != event.EffectIntended && name != event.EffectCompleted {
		r.index[e.ID] = i
	}
	switch name {
	case event.EffectIntended:
		return r.addIntent(e)
	case event.EffectCompleted:
		return r.addCompletion(e)
	case event.ApprovalRequested:
		return r.addReview(e)
	case event.ApprovalResolved, event.ApprovalCanceled:
		return r.addAnswer(e)
	case event.WaitStarted, event.WaitResolved:
		return r.addWait(e)
	case event.TurnHibernated:
		h, err := event.DecodeKept[event.TurnHibernation](e)
		if err != nil || h.TurnID != r.turn || h.Cursor.Ordinal == "" {
			return err
		}
		if r.own(e) {
			r.ordinal(h.Cursor.Ordinal, e.Seq)
		} else {
			r.reach(h.Cursor.Ordinal, e.Seq) // the messages before it are in the log
		}
		return nil
	}
	return nil
}

func (r *records) addIntent(e *event.Event) error {
	p, err := event.DecodeShared[event.EffectIntent](e)
	if err != nil || p.TurnID != r.turn {
		return err
	}
	x := r.ordinal(p.Ordinal, e.Seq)
	if n, place, ok := splitOrdinal(p.Ordinal); ok && place >= 0 {
		r.tops[n].size = max(r.tops[n].size, place+1)
	}
	if x.begun == 0 || x.inherited && r.own(e) {
		x.begun = e.Seq + int64(e.More())
	}
	if x.done == nil {
		x.intent, x.intended, x.inherited, x.retryAt = p, e.Seq, !r.own(e), time.Time{}
	}
	return nil
}

func (r *records) addCompletion(e *event.Event) error {
	p, err := event.DecodeShared[event.EffectCompletion](e)
	if err != nil || p.TurnID != r.turn {
		return err
	}
	x := r.ordinal(p.Ordinal, e.Seq)
	switch {
	case x.done != nil && !p.RetryAt.IsZero() && p.Attempt == x.done.Attempt: // StartOptions.Retry
		x.done, x.retryAt, x.failures = nil, p.RetryAt, 0
	case x.done != nil:
	case p.RetryAt.IsZero():
		x.done, x.doneEvent = p, e
		r.spent.use(p.Usage)
	case x.intent != nil:
		x.retryAt = p.RetryAt
		if p.By == "" {
			x.failures++
		}
	}
	return nil
}

func (r *records) addReview(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalRequest](e)
	if err == nil && p.TurnID == r.turn && p.Ordinal != "" && r.own(e) {
		r.ordinal(p.Ordinal, e.Seq).review = &reviewRecord{request: p, seq: e.Seq}
	}
	return err
}

// addAnswer adds an answer to its review. The first answer counts.
func (r *records) addAnswer(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalResolution](e)
	if err != nil {
		return err
	}
	for _, x := range r.at {
		if v := x.review; v != nil && v.request.InterruptID == p.InterruptID && v.answer == nil && !v.canceled && !v.erased && v.binds(&p) {
			switch {
			case e.Type.Name() == event.ApprovalCanceled:
				v.canceled = true
			case e.Redacted():
				v.erased = true
			default:
				v.answer = &p
			}
		}
	}
	return nil
}

func (r *records) addWait(e *event.Event) error {
	p, err := decodeWait(e)
	if err != nil || !r.own(e) {
		return err
	}
	if e.Type.Name() == event.WaitStarted {
		if p.TurnID == r.turn && p.Ordinal != "" {
			r.ordinal(p.Ordinal, e.Seq).wait = &waitRecord{start: p, seq: e.Seq, point: pointOf(e)}
		}
		return nil
	}
	if w := r.wait(p.WaitID); w != nil && w.resolved == nil {
		w.resolved = &p
	}
	return nil
}

// decodeWait decodes a wait. A wait whose value was erased was canceled.
func decodeWait(e *event.Event) (event.Wait, error) {
	p, err := event.DecodeKept[event.Wait](e)
	if e.Redacted() && e.Type.Name() == event.WaitResolved && p.Outcome.Known() == event.WaitWasResolved {
		p.Outcome = event.WaitCanceled
	}
	return p, err
}
