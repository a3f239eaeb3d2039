package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

func (l *Log) prefixBackward(ctx context.Context, fork *Event, span Span, yield func(Event, error) bool) {
	segments, err := l.ancestors(ctx, fork, span.From)
	if err != nil {
		yield(Event{}, err)
		return
	}
	left := span.Limit
	for i, s := range segments {
		bounds := Span{From: span.From, To: s.to, Backward: true, Limit: left}
		if i+1 < len(segments) {
			bounds.From = max(bounds.From, segments[i+1].to+1)
		}
		if span.To > 0 {
			bounds.To = min(s.to, span.To)
		}
		next := bounds.To
		for e, err := range l.store.Read(ctx, s.session, bounds) {
			if err == nil {
				err = s.check(&e, next)
			}
			if !yield(e, err) || err != nil {
				return
			}
			next = e.Seq - 1
			if left > 0 {
				if left--; left == 0 {
					return
				}
			}
		}
		if next >= max(bounds.From, 1) {
			yield(Event{}, s.missing(next))
			return
		}
	}
}

// ancestors resolves the sessions that a fork's prefix runs through, nearest
// first, as far back as seq from.
func (l *Log) ancestors(ctx context.Context, fork *Event, from int64) ([]segment, error) {
	var segments []segment
	seen := map[string]bool{fork.SessionID: true}
	for fork.Type.Name() == SessionForked {
		f, _, err := fork.Fork()
		if err != nil {
			return nil, err
		}
		if f.Seq < max(from, 1) {
			break
		}
		if f.Seq >= fork.Seq || seen[f.Parent] {
			return nil, &CorruptError{Session: fork.SessionID, Offset: -1, Seq: fork.Seq, Cause: errForkCycle}
		}
		seen[f.Parent] = true
		s := segment{session: f.Parent, to: f.Seq, hash: f.Hash}
		if n := len(segments); n > 0 && segments[n-1].to < s.to {
			// The fork point lies in what the nearer ancestor shares with this one.
			s.to, s.hash = segments[n-1].to, segments[n-1].hash
		}
		segments = append(segments, s)
		first, err := l.firstEvent(ctx, f.Parent)
		if err != nil {
			return nil, fmt.Errorf("parent of session %q: %w", fork.SessionID, err)
		}
		if first.Seq <= max(from, 1) {
			break
		}
		fork = &first
	}
	return segments, nil
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
