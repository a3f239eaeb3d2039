package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

var (
	errForkPoint = errors.New("the parent's event at the fork point is not the one that was forked")
	errForkCycle = errors.New("a session is its own ancestor")
)

// segment is a stretch of one session that a lineage runs through.
type segment struct {
	session string
	to      int64 // the fork point
	hash    Hash  // of the event there
}

// lineage yields the events of r as they are stored, through the parents of a
// fork where r reaches into them.
func (l *Log) lineage(ctx context.Context, session string, r Range) iter.Seq2[Event, error] {
	if r.span.Backward {
		return l.lineageBackward(ctx, session, r)
	}
	return l.lineageForward(ctx, session, r)
}

func (l *Log) lineageForward(ctx context.Context, session string, r Range) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		first := true
		for e, err := range l.store.Read(ctx, session, r.span) {
			if err == nil && first && !r.own && e.Seq > max(r.span.From, 1) && e.Type.Name() == SessionForked {
				if !l.prefix(ctx, &e, r.span, yield) {
					return
				}
			}
			first = false
			if !yield(e, err) || err != nil {
				return
			}
		}
		if first && !r.own {
			l.within(ctx, session, r.span, yield)
		}
	}
}

// within yields a span that lies before the session's own first event.
func (l *Log) within(ctx context.Context, session string, span Span, yield func(Event, error) bool) {
	if span.To == 0 {
		return
	}
	for e, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
		if err != nil {
			yield(Event{}, err)
		} else if span.To < e.Seq && e.Type.Name() == SessionForked {
			l.prefix(ctx, &e, span, yield)
		}
	}
}

// prefix yields the part of a fork's shared prefix that lies in span, oldest
// first. fork is the session's first event.
func (l *Log) prefix(ctx context.Context, fork *Event, span Span, yield func(Event, error) bool) bool {
	segments, err := l.ancestors(ctx, fork, span.From)
	if err != nil {
		return yield(Event{}, err) && false
	}
	from := max(span.From, 1)
	for _, s := range slices.Backward(segments) {
		to := s.to
		if span.To > 0 {
			to = min(to, span.To)
		}
		if from > to {
			continue
		}
		for e, err := range l.store.Read(ctx, s.session, Span{From: from, To: to}) {
			if err == nil {
				err = s.check(&e, from)
			}
			if !yield(e, err) || err != nil {
				return false
			}
			from = e.Seq + 1
		}
		if from <= to {
			return yield(Event{}, s.missing(from)) && false
		}
	}
	return true
}

func (l *Log) lineageBackward(ctx context.Context, session string, r Range) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		span, left, none := r.span, r.span.Limit, true
		var oldest Event
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
		if r.own {
			return
		}
		if none {
			if span.To == 0 {
				return
			}
			for e, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
				if err != nil {
					yield(Event{}, err)
					return
				}
				oldest = e
			}
			if span.To >= oldest.Seq {
				return
			}
		}
		if oldest.Type.Name() == SessionForked && oldest.Seq > max(span.From, 1) {
			span.Limit = left
			l.prefixBackward(ctx, &oldest, span, yield)
		}
	}
}

// prefixBackward is prefix from its end back. Of the ancestors it looks up only
// those that it comes to.
func (l *Log) prefixBackward(ctx context.Context, fork *Event, span Span, yield func(Event, error) bool) {
	var s segment // the nearest ancestor that is not read yet
	for older, err := range l.ancestry(ctx, fork, span.From) {
		if err != nil {
			yield(Event{}, err)
			return
		}
		if s.session != "" && !l.segmentBackward(ctx, &s, older.to+1, &span, yield) {
			return
		}
		s = older
	}
	if s.session != "" {
		l.segmentBackward(ctx, &s, 1, &span, yield)
	}
}

// segmentBackward yields what of a segment that begins at from lies in span, and
// counts it off the limit. It is false when there is nothing to go on with.
func (l *Log) segmentBackward(ctx context.Context, s *segment, from int64, span *Span, yield func(Event, error) bool) bool {
	bounds := Span{From: max(span.From, from), To: s.to, Backward: true, Limit: span.Limit}
	if span.To > 0 {
		bounds.To = min(s.to, span.To)
	}
	if bounds.From > bounds.To {
		return true
	}
	next := bounds.To
	for e, err := range l.store.Read(ctx, s.session, bounds) {
		if err == nil {
			err = s.check(&e, next)
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
	if next >= bounds.From {
		yield(Event{}, s.missing(next))
		return false
	}
	return true
}

// ancestors resolves the sessions that a fork's prefix runs through, nearest
// first, as far back as seq from.
func (l *Log) ancestors(ctx context.Context, fork *Event, from int64) (segments []segment, err error) {
	for s, err := range l.ancestry(ctx, fork, from) {
		if err != nil {
			return nil, err
		}
		segments = append(segments, s)
	}
	return segments, nil
}

// ancestry yields the ancestors that ancestors lists, and looks up each when it
// is asked for.
func (l *Log) ancestry(ctx context.Context, fork *Event, from int64) iter.Seq2[segment, error] {
	return func(yield func(segment, error) bool) {
		from = max(from, 1)
		seen := map[string]bool{fork.SessionID: true}
		nearer := segment{to: math.MaxInt64}
		for fork.Type.Name() == SessionForked {
			f, _, err := fork.Fork()
			if err != nil {
				yield(segment{}, err)
				return
			}
			if f.Seq < from {
				return
			}
			if f.Seq >= fork.Seq || seen[f.Parent] {
				yield(segment{}, &CorruptError{Session: fork.SessionID, Offset: -1, Seq: fork.Seq, Cause: errForkCycle})
				return
			}
			seen[f.Parent] = true
			s := segment{session: f.Parent, to: f.Seq, hash: f.Hash}
			if nearer.to < s.to {
				// The fork point lies in what the nearer ancestor shares with this one.
				s.to, s.hash = nearer.to, nearer.hash
			}
			if nearer = s; !yield(s, nil) {
				return
			}
			first, err := l.firstEvent(ctx, f.Parent)
			if err != nil {
				yield(segment{}, fmt.Errorf("parent of session %q: %w", fork.SessionID, err))
				return
			}
			if first.Seq <= from {
				return
			}
			fork = &first
		}
	}
}

func (l *Log) firstEvent(ctx context.Context, session string) (Event, error) {
	for e, err := range l.store.Read(ctx, session, Span{Limit: 1}) {
		return e, err
	}
	return Event{}, fmt.Errorf("session %q: %w", session, ErrNotFound)
}

// check makes sure that e is the event due at seq, and at the fork point the
// one that was forked.
func (s *segment) check(e *Event, seq int64) error {
	if e.Seq != seq {
		return s.missing(seq)
	}
	if e.Seq == s.to && e.Hash() != s.hash {
		return &CorruptError{Session: s.session, Offset: -1, Seq: e.Seq, Cause: errForkPoint}
	}
	return nil
}

func (s *segment) missing(seq int64) error {
	return &CorruptError{Session: s.session, Offset: -1, Seq: seq,
		Cause: fmt.Errorf("event %d, which a fork needs, is missing", seq)}
}
