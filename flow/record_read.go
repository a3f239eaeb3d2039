package flow

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

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
	case event.StepStarted:
		p, err := event.DecodeKept[event.StepStart](e)
		if err == nil && p.TurnID == r.turn && r.last != nil && r.own(e) {
			r.last.seen = p.Seen
		}
		return err
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
		r.addCursor(e, &h.Cursor)
		return nil
	}
	return nil
}

func (r *records) addIntent(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectIntent](e)
	if err != nil || p.TurnID != r.turn {
		return err
	}
	x := r.ordinal(p.Ordinal, e.Seq)
	r.last = x
	if n, place, ok := splitOrdinal(p.Ordinal); ok && place >= 0 {
		r.tops[n].size = max(r.tops[n].size, place+1)
	}
	if x.begun == 0 || x.inherited && r.own(e) {
		x.begun = e.Seq + int64(e.More())
	}
	if x.done == nil {
		x.intent, x.intended, x.inherited, x.retryAt = &p, e.Seq, !r.own(e), time.Time{}
	}
	return nil
}

func (r *records) addCompletion(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectCompletion](e)
	if err != nil || p.TurnID != r.turn {
		return err
	}
	x := r.ordinal(p.Ordinal, e.Seq)
	switch {
	case x.done != nil && !p.RetryAt.IsZero() && p.Attempt == x.done.Attempt: // StartOptions.Retry
		x.done, x.retryAt, x.failures = nil, p.RetryAt, 0
	case x.done != nil:
	case p.RetryAt.IsZero():
		x.done, x.doneEvent = &p, e
		r.spent.use(p.Usage)
	case x.intent != nil:
		x.retryAt = p.RetryAt
		if p.By == "" {
			x.failures++
		}
	}
	return nil
}

// addCursor adds the place of a hibernation. The messages before it are in the log.
func (r *records) addCursor(e *event.Event, c *event.Cursor) {
	s := shape{seq: e.Seq, kind: c.EffectKind, name: c.Operation, inherited: !r.own(e)}
	if s.inherited {
		r.reach(c.Ordinal, e.Seq)
	} else {
		r.ordinal(c.Ordinal, e.Seq)
	}
	if c.Kind == pauseWait && !s.inherited {
		s.arguments = awaitArguments(c.Operation, waitsOf(c))
	}
	if _, known := r.shapes[c.Ordinal]; !known {
		r.shapes[c.Ordinal] = s
	}
}

func (r *records) addReview(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalRequest](e)
	if err != nil || p.TurnID != r.turn || p.Ordinal == "" {
		return err
	}
	s := shape{seq: e.Seq, kind: kindEffect, name: p.Name, nonce: p.Nonce, digest: p.ArgumentsDigest, arguments: p.Arguments, inherited: !r.own(e)}
	if p.CallID != "" {
		s.kind = kindTool
	}
	r.shapes[p.Ordinal] = s
	r.reach(p.Ordinal, e.Seq)
	if !s.inherited {
		r.ordinal(p.Ordinal, e.Seq).review = &reviewRecord{request: p, seq: e.Seq}
	}
	return nil
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
	if err != nil {
		return err
	}
	if e.Type.Name() == event.WaitStarted {
		if p.TurnID == r.turn && p.Ordinal != "" {
			r.startWait(e, p)
		}
		return nil
	}
	ended := &waitRecord{start: event.Wait{WaitID: p.WaitID}, resolved: &p, ended: pointOf(e)}
	if !r.own(e) {
		r.passed[p.WaitID] = ended
		return nil
	}
	if w := r.wait(p.WaitID); w != nil && w.resolved == nil {
		w.resolved, w.ended = ended.resolved, ended.ended
	}
	return nil
}

// startWait adds a wait that began. A wait of another session is replaced by a wait of this
// session, unless the turn has its result.
func (r *records) startWait(e *event.Event, p event.Wait) {
	own := r.own(e)
	r.shapes[p.Ordinal] = shape{seq: e.Seq, kind: kindNewWait, name: p.Reason, wait: p.WaitID, point: pointOf(e), inherited: !own}
	r.reach(p.Ordinal, e.Seq)
	if own {
		r.ordinal(p.Ordinal, e.Seq).wait = &waitRecord{start: p, seq: e.Seq, point: pointOf(e)}
	}
}

// awaited reports whether the turn has the result of a wait.
func (r *records) awaited(wait string) bool {
	for _, x := range r.at {
		if x.done != nil && x.intent != nil && x.intent.Kind == kindWait && bytes.Contains(x.intent.Arguments, quoted(wait)) {
			return true
		}
	}
	return false
}

// quoted is the id of a wait as JSON.
func quoted(wait string) jsontext.Value { return jsontext.Value(strconv.Quote(wait)) }

// awaitArguments are the arguments of an effect that awaits some waits: the id, or for First the list of ids.
func awaitArguments(name string, waits []string) jsontext.Value {
	if name != firstName {
		return quoted(waits[0])
	}
	list := []byte{'['}
	for i, id := range waits {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, quoted(id)...)
	}
	return append(list, ']')
}

// waitsOf are the waits that a cursor waits for.
func waitsOf(c *event.Cursor) []string {
	if len(c.WaitIDs) > 0 {
		return c.WaitIDs
	}
	return []string{c.InterruptID}
}

// decodeWait decodes a wait. A wait whose value was erased was canceled.
func decodeWait(e *event.Event) (event.Wait, error) {
	p, err := event.DecodeKept[event.Wait](e)
	if e.Redacted() && e.Type.Name() == event.WaitResolved && p.Outcome.Known() == event.WaitWasResolved {
		p.Outcome = event.WaitCanceled
	}
	return p, err
}
