package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/convlog/convlog/event"
)

var errForkPoint = errors.New("the parent's event at the fork point is not the event that was forked")

// Ancestor is a session that a fork reads its past through.
type Ancestor struct {
	Session string
	// Through is the newest event of the session that the fork shares, and its hash.
	// It is before the ancestor's own events if a nearer ancestor was forked there.
	Through event.Head
	// Child is the session that was forked from this one, and Fork what its
	// session_forked says.
	Child string
	Fork  event.Fork
}

// Ancestors yields the sessions that a session was forked from, nearest first;
// none of a session that is no fork. Each is looked up when it is asked for: an
// ancestor that is missing is ErrNotFound, a session that is its own ancestor a
// *CorruptError (ErrCycle). It does not check that the ancestors have the shared events.
func (l *Log) Ancestors(ctx context.Context, session string) iter.Seq2[Ancestor, error] {
	return func(yield func(Ancestor, error) bool) {
		err := l.readable(ctx, session)
		var first event.Event
		if err == nil {
			first, err = l.firstEvent(ctx, session)
		}
		if err != nil {
			yield(Ancestor{}, err)
			return
		}
		l.ancestors(ctx, first, 0)(yield)
	}
}

// ancestors yields the ancestors of the session that begins with first, as far
// back as they hold events from seq from on; from 0, all of them.
func (l *Log) ancestors(ctx context.Context, first event.Event, from int64) iter.Seq2[Ancestor, error] {
	return func(yield func(Ancestor, error) bool) {
		seen := map[string]bool{first.SessionID: true}
		through := event.Head{Seq: math.MaxInt64}
		for first.Type.Name() == event.SessionForked {
			f, _, err := event.Decode[event.Fork](&first)
			if err != nil {
				yield(Ancestor{}, err)
				return
			}
			if f.Seq < from {
				return
			}
			if f.Seq >= first.Seq || seen[f.Parent] {
				yield(Ancestor{}, damaged(first.SessionID, first.Seq, ErrCycle))
				return
			}
			seen[f.Parent] = true
			if f.Seq < through.Seq {
				through = f.Point()
			}
			if !yield(Ancestor{Session: f.Parent, Through: through, Child: first.SessionID, Fork: f}, nil) {
				return
			}
			child := first.SessionID
			if first, err = l.firstEvent(ctx, f.Parent); err != nil {
				yield(Ancestor{}, fmt.Errorf("parent of session %q: %w", child, err))
				return
			}
			if first.Seq <= from {
				return
			}
		}
	}
}

// lineage yields the events of span as they are stored, through the parents of a
// fork where span reaches into them, unless own excludes those.
func (l *Log) lineage(ctx context.Context, session string, span Span, own bool) iter.Seq2[event.Event, error] {
	if own {
		return l.store.Read(ctx, session, span)
	}
	return func(yield func(event.Event, error) bool) {
		if span.Backward {
			l.lineageBackward(ctx, session, span, yield)
		} else {
			l.lineageForward(ctx, session, span, yield)
		}
	}
}

func (l *Log) lineageForward(ctx context.Context, session string, span Span, yield func(event.Event, error) bool) {
	none := true
	for e, err := range l.store.Read(ctx, session, span) {
		if err == nil && none && e.Seq > max(span.From, 1) && e.Type.Name() == event.SessionForked {
			if !l.prefix(ctx, e, span, yield) {
				return
			}
		}
		none = false
		if !yield(e, err) || err != nil {
			return
		}
	}
	if none && span.To > 0 {
		l.beforeOwn(ctx, session, span, func(first event.Event) { l.prefix(ctx, first, span, yield) }, yield)
	}
}

// beforeOwn calls read with the session's first event if the span ends before it.
func (l *Log) beforeOwn(ctx context.Context, session string, span Span, read func(first event.Event), yield func(event.Event, error) bool) {
	for first, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
		if err != nil {
			yield(event.Event{}, err)
		} else if span.To < first.Seq && first.Type.Name() == event.SessionForked {
			read(first)
		}
	}
}

// prefix yields the events of span that a fork shares with its ancestors, oldest
// first. first is the fork's first event.
func (l *Log) prefix(ctx context.Context, first event.Event, span Span, yield func(event.Event, error) bool) bool {
	var line []Ancestor
	for a, err := range l.ancestors(ctx, first, max(span.From, 1)) {
		if err != nil {
			return yield(event.Event{}, err) && false
		}
		line = append(line, a)
	}
	from := max(span.From, 1)
	for _, a := range slices.Backward(line) {
		to := a.Through.Seq
		if span.To > 0 {
			to = min(to, span.To)
		}
		if from > to {
			continue
		}
		for e, err := range l.store.Read(ctx, a.Session, Span{From: from, To: to}) {
			if err == nil {
				err = a.check(&e, from)
			}
			if !yield(e, err) || err != nil {
				return false
			}
			from = e.Seq + 1
		}
		if from <= to {
			return yield(event.Event{}, missingEvent(a.Session, from)) && false
		}
	}
	return true
}

func (l *Log) lineageBackward(ctx context.Context, session string, span Span, yield func(event.Event, error) bool) {
	left, none := span.Limit, true
	var oldest event.Event
	for e, err := range l.store.Read(ctx, session, span) {
		if !yield(e, err) || err != nil {
			return
		}
		oldest, none = e, false
		if left > 0 {
			if left--; left == 0 {
				return
			}
		}
	}
	span.Limit = left
	switch {
	case none && span.To > 0:
		l.beforeOwn(ctx, session, span, func(first event.Event) { l.prefixBackward(ctx, first, span, yield) }, yield)
	case !none && oldest.Type.Name() == event.SessionForked && oldest.Seq > max(span.From, 1):
		l.prefixBackward(ctx, oldest, span, yield)
	}
}

// prefixBackward is prefix, newest first. It looks up only the ancestors it comes
// to.
func (l *Log) prefixBackward(ctx context.Context, first event.Event, span Span, yield func(event.Event, error) bool) {
	var next Ancestor // the nearest ancestor that is not read yet
	for older, err := range l.ancestors(ctx, first, max(span.From, 1)) {
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		if next.Session != "" && !l.sharedBackward(ctx, &next, older.Through.Seq+1, &span, yield) {
			return
		}
		next = older
	}
	if next.Session != "" {
		l.sharedBackward(ctx, &next, 1, &span, yield)
	}
}

// sharedBackward yields the shared events of an ancestor from seq from on that are
// in span, newest first, and counts them off the limit. It is false if the reading
// is over.
func (l *Log) sharedBackward(ctx context.Context, a *Ancestor, from int64, span *Span, yield func(event.Event, error) bool) bool {
	part := Span{From: max(span.From, from), To: a.Through.Seq, Backward: true, Limit: span.Limit}
	if span.To > 0 {
		part.To = min(part.To, span.To)
	}
	if part.From > part.To {
		return true
	}
	next := part.To
	for e, err := range l.store.Read(ctx, a.Session, part) {
		if err == nil {
			err = a.check(&e, next)
		}
		if !yield(e, err) || err != nil {
			return false
		}
		next = e.Seq - 1
		if span.Limit > 0 {
			if span.Limit--; span.Limit == 0 {
				return false
			}
		}
	}
	if next >= part.From {
		yield(event.Event{}, missingEvent(a.Session, next))
		return false
	}
	return true
}

// check makes sure that e is the event due at seq, and at the fork point the event
// that was forked.
func (a *Ancestor) check(e *event.Event, seq int64) error {
	if e.Seq != seq {
		return missingEvent(a.Session, seq)
	}
	if e.Seq == a.Through.Seq && e.Hash() != a.Through.Hash {
		return damaged(a.Session, e.Seq, errForkPoint)
	}
	return nil
}

func missingEvent(session string, seq int64) error {
	return damaged(session, seq, fmt.Errorf("event %d, which a fork needs, is missing", seq))
}

// firstEvent is the first event that the session itself holds.
func (l *Log) firstEvent(ctx context.Context, session string) (event.Event, error) {
	for e, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
		return e, err
	}
	return event.Event{}, fmt.Errorf("session %q: %w", session, ErrNotFound)
}

// CheckAncestor makes sure that an ancestor still has the event up to which it is
// shared, itself or through its own ancestors. A missing ancestor is ErrNotFound, a
// missing or other event a *CorruptError.
func (l *Log) CheckAncestor(ctx context.Context, a Ancestor) error {
	if a.Through.Seq == 0 {
		_, err := l.firstEvent(ctx, a.Session)
		return err
	}
	e, err := l.bareEvent(ctx, a.Session, a.Through.Seq)
	if errors.Is(err, ErrEventNotFound) {
		return missingEvent(a.Session, a.Through.Seq)
	}
	if err != nil {
		return fmt.Errorf("parent of session %q: %w", a.Child, err)
	}
	return a.check(&e, a.Through.Seq)
}
