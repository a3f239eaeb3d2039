package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/backward"
)

// Path returns the path that ends with the event at seq: the seqs of its events, as
// stretches in ascending order. Seq 0 is the newest event, whose path is the active
// path. Head_moved events are on the path too. A missing session is ErrNotFound, a seq
// after the head ErrEventNotFound.
func (l *Log) Path(ctx context.Context, session string, seq int64) (event.Path, error) {
	head, err := l.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	if seq < 0 || seq > head.Seq {
		return nil, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
	}
	if seq == 0 {
		seq = head.Seq
	}
	return new(pathFinder).find(ctx, l, session, seq, 1)
}

// onPath yields the events of r that are on the path to the newest event of r.
func (l *Log) onPath(ctx context.Context, session string, r Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		end, from := r.span.To, max(r.span.From, 1)
		head, err := l.Head(ctx, session)
		if err == nil && r.own {
			from, err = l.ownFrom(ctx, session, from)
		}
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		if end == 0 || end > head.Seq {
			end = head.Seq
		}
		if r.span.Backward {
			l.pathBackward(ctx, session, end, from, yield)
		} else {
			l.pathForward(ctx, session, head, Span{From: from, To: end, Transient: r.span.Transient}, yield)
		}
	}
}

// ownFrom is the larger of from and the seq of the session's first own event.
func (l *Log) ownFrom(ctx context.Context, session string, from int64) (int64, error) {
	first, err := l.firstEvent(ctx, session)
	return max(from, first.Seq), err
}

// pathBackward yields the events of the path from seq end back to seq from. It reads
// only events that it yields, and short gaps between them.
func (l *Log) pathBackward(ctx context.Context, session string, end, from int64, yield func(event.Event, error) bool) {
	for walk := (backward.Walk{Next: end}); walk.Next >= from; {
		at := walk.Next
		for e, err := range l.lineage(ctx, session, Span{From: from, To: walk.Next, Backward: true}, false) {
			if err != nil {
				yield(e, err)
				return
			}
			onPath, err := walk.Step(&e)
			if err != nil {
				yield(event.Event{}, onTree(&e, err))
				return
			}
			if onPath && !yield(e, nil) {
				return
			}
			if walk.Next < from || onPath && e.Seq-walk.Next > maxSkipped {
				break
			}
		}
		if walk.Next == at {
			yield(event.Event{}, damaged(session, at, errPathEnds))
			return
		}
	}
}

// maxSkipped is the largest gap in a path, in events, that is read and skipped. A new
// read begins after a larger gap.
const maxSkipped = 256

// pathForward yields the events of the path from span.From to span.To, oldest first. It
// finds the path by an index of head_moved events, or backward: then it buffers the newest
// events, and reads only the older events again.
func (l *Log) pathForward(ctx context.Context, session string, head event.Head, span Span, yield func(event.Event, error) bool) {
	f := &pathFinder{buffer: eventBuffer{left: pathBuffer}}
	path, ok := f.findByIndex(ctx, l, session, head, span)
	if !ok {
		var err error
		if path, err = f.find(ctx, l, session, span.To, span.From); err != nil {
			yield(event.Event{}, err)
			return
		}
	}
	for path = f.unbuffered(path); len(path) > 0; {
		n := path.Near()
		if !l.stretches(ctx, session, path[:n], f.rest, span.Transient, yield) {
			return
		}
		path = path[n:]
	}
	f.buffer.yield(yield)
}

// stretches yields the events of the stretches in one read. It yields an error if the
// session no longer has the newest event, or has another event in the place of rest.
func (l *Log) stretches(ctx context.Context, session string, path event.Path, rest event.Head, transient bool, yield func(event.Event, error) bool) bool {
	span := Span{From: path[0].From, To: path[len(path)-1].To, Transient: transient}
	last := int64(0)
	for e, err := range l.lineage(ctx, session, span, false) {
		if err == nil && e.Seq > path[0].To {
			path = path[1:]
		}
		if err == nil && e.Seq < path[0].From {
			continue
		}
		if err == nil && e.Seq == rest.Seq && e.Hash() != rest.Hash {
			err = removedDuring(session)
		}
		if err == nil && e.Seq > path[0].From && e.Type.Name() == event.HeadMoved {
			err = follows(&e)
		}
		if !yield(e, err) || err != nil {
			return false
		}
		last = e.Seq
	}
	return last == span.To || yield(event.Event{}, removedDuring(session)) && false
}

var errNotIndexed = errors.New("the store's index of head_moved events lacks the event: copy the store with logtool store convert")

// follows returns an error if the parent of a head_moved event is not the event before it: then a
// path has a gap that the index does not show.
func follows(e *event.Event) error {
	parent, err := e.Parent()
	if err == nil && parent != e.Seq-1 {
		err = damaged(e.SessionID, e.Seq, errNotIndexed)
	}
	return onTree(e, err)
}

// removedDuring is the error of a read that finds another session of the same name.
func removedDuring(session string) error {
	return fmt.Errorf("session %q was removed during the read: %w", session, ErrNotFound)
}
