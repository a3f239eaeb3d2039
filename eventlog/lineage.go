package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

var errForkPoint = errors.New("the event at the fork point is another event than session_forked names")

// Ancestor is the parent of a fork, or the parent of another ancestor.
type Ancestor struct {
	Session string
	// Through is the newest event that the fork shares with the ancestor. Its seq may
	// be before the ancestor's own events, if a nearer ancestor shares no more.
	Through event.Head
	// Child is the session that was forked from this one. Fork is the payload of its
	// session_forked event.
	Child string
	Fork  event.Fork
}

// Ancestors yields the parent of a fork, then the parent of the parent, and so on. It
// yields nothing for a session that is not a fork. It reads each ancestor only when the
// iteration reaches it. A missing session is ErrNotFound; a session that is its own
// ancestor is a *CorruptError (engine.ErrCycle). Ancestors does not check that an ancestor has the shared
// events; CheckAncestor does.
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

// ancestors yields the ancestors of the session with first event first. It stops at the
// ancestor with event from; if from is 0, it yields all ancestors.
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
				yield(Ancestor{}, damaged(first.SessionID, first.Seq, engine.ErrCycle))
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

// lineage yields the events of span as they are stored. It reads shared events from the
// parents of a fork, unless own is true.
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
	empty := true // the session itself has no event of span
	for e, err := range l.store.Read(ctx, session, span) {
		if err == nil && empty && e.Seq > max(span.From, 1) && e.Type.Name() == event.SessionForked {
			if !l.prefix(ctx, e, span, yield) {
				return
			}
		}
		empty = false
		if !yield(e, err) || err != nil {
			return
		}
	}
	if empty && span.To > 0 {
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

// prefix yields the events of span that a fork shares with its ancestors, oldest first.
// first is the first event of the fork. It returns false at the end of the iteration.
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
		for e, err := range l.store.Read(ctx, a.Session, Span{From: from, To: to, Transient: span.Transient}) {
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
	left, empty := span.Limit, true
	var fork event.Event // the oldest event, if it is a session_forked
	for e, err := range l.store.Read(ctx, session, span) {
		if !yield(e, err) || err != nil {
			return
		}
		if e.Type.Name() == event.SessionForked {
			fork = e.Clone()
		} else if fork.Seq > 0 {
			fork = event.Event{}
		}
		empty = false
		if left > 0 {
			if left--; left == 0 {
				return
			}
		}
	}
	span.Limit = left
	switch {
	case empty && span.To > 0:
		l.beforeOwn(ctx, session, span, func(first event.Event) { l.prefixBackward(ctx, first, span, yield) }, yield)
	case fork.Seq > max(span.From, 1):
		l.prefixBackward(ctx, fork, span, yield)
	}
}

// prefixBackward is prefix, newest first. It reads an ancestor only when the iteration
// reaches it.
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

// sharedBackward yields the events of span that an ancestor shares, down to seq from,
// newest first. It reduces span.Limit by their number. It returns false at the end of
// the iteration.
func (l *Log) sharedBackward(ctx context.Context, a *Ancestor, from int64, span *Span, yield func(event.Event, error) bool) bool {
	part := Span{From: max(span.From, from), To: a.Through.Seq, Backward: true, Transient: span.Transient, Limit: span.Limit}
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

// check returns an error if e is not event seq, or if it is at the fork point and
// another event than the fork names.
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

// firstEvent is the first own event of the session.
func (l *Log) firstEvent(ctx context.Context, session string) (event.Event, error) {
	for e, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
		return e, err
	}
	return event.Event{}, fmt.Errorf("session %q: %w", session, ErrNotFound)
}

// CheckAncestor checks that an ancestor still has the newest shared event, itself or in
// its own ancestors. A missing ancestor is ErrNotFound; a missing event, or another
// event in its place, is a *CorruptError.
func (l *Log) CheckAncestor(ctx context.Context, a Ancestor) error {
	if err := l.readable(ctx, a.Session); err != nil {
		return err
	}
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
