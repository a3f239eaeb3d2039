package projection

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// fold folds what the scan found behind the snapshots, oldest first.
func (l *Loaded) fold(ctx context.Context, s *scan) error {
	if !s.overflow {
		for _, e := range slices.Backward(s.tail) {
			if err := l.feed(s, &e); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range s.ranges(l.Head.Seq) {
		for e, err := range s.log.Read(ctx, l.Session, eventlog.Between(r.From, r.To)) {
			if err != nil {
				return fmt.Errorf("project session %q: %w", l.Session, err)
			}
			l.Explain.read(&e)
			if err := l.feed(s, &e); err != nil {
				return err
			}
		}
	}
	return nil
}

// feed gives an event to the folds that it is for.
func (l *Loaded) feed(s *scan, e *event.Event) error {
	onPath, e := s.onPath(e.Seq), e.Effective()
	for i, f := range s.folds {
		if e.Seq <= f.base || !inScope(f.scope(), e.Type, onPath) {
			continue
		}
		if err := f.apply(e); err != nil {
			return err
		}
		l.Explain.Parts[i].Folded++
	}
	return nil
}

// tailBuffer is how many bytes of events a scan keeps for the folding that
// follows it; beyond that they are read again.
const tailBuffer = 8 << 20

// step takes in an event of the path.
func (s *scan) step(e *event.Event) {
	if n := len(s.path); n > 0 && s.path[n-1].From == e.Seq+1 {
		s.path[n-1].From = e.Seq
	} else {
		s.path = append(s.path, event.Stretch{From: e.Seq, To: e.Seq})
	}
	s.last.oldest = *e
}

// keep holds on to the event for the folding, while there are few.
func (s *scan) keep(e *event.Event) {
	if s.overflow {
		return
	}
	s.tailBytes += len(e.Line()) + len(e.Data)
	if s.tailBytes > s.buffer {
		s.tail, s.overflow = nil, true
		return
	}
	s.tail = append(s.tail, *e)
}

// lowest is the seq after which all events are needed that a fold of session
// scope, or of another, folds. ok is false when there is no such fold.
func (s *scan) lowest(session bool) (seq int64, ok bool) {
	for _, f := range s.folds {
		if (f.scope() == event.SessionScope) == session {
			if !ok || f.base < seq {
				seq = f.base
			}
			ok = true
		}
	}
	return seq, ok
}

// passed reports whether seq is on the part of the path that was seen.
func (s *scan) passed(seq int64) bool {
	return slices.ContainsFunc(s.path, func(p event.Stretch) bool { return p.From <= seq && seq <= p.To })
}

// onPath reports whether seq is on the part of the path that was seen. Calls
// come in ascending order of seq.
func (s *scan) onPath(seq int64) bool {
	for n := len(s.path); n > 0; n-- {
		switch p := s.path[n-1]; {
		case seq > p.To:
			s.path = s.path[:n-1]
		default:
			return seq >= p.From
		}
	}
	return false
}

// ranges are the seqs to fold, oldest first, each event once.
func (s *scan) ranges(head int64) (r []event.Stretch) {
	add := func(from, to int64) {
		if from > to {
			return
		}
		if n := len(r); n > 0 && from <= r[n-1].To+1 {
			r[n-1].To = max(r[n-1].To, to)
			return
		}
		r = append(r, event.Stretch{From: from, To: to})
	}
	path, hasPath := s.lowest(false)
	all, hasAll := s.lowest(true)
	if !hasAll {
		all = head
	}
	if hasPath {
		for n := len(s.path); n > 0; n-- {
			p := s.path[n-1]
			add(max(p.From, path+1), min(p.To, all))
		}
	}
	add(all+1, head)
	return r
}
