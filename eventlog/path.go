package eventlog

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
)

// Path is the path that ends with the event at seq; 0 is the newest event, whose
// path is the active one. A head_moved event is on its own path. A missing session is
// ErrNotFound, a seq after the head ErrEventNotFound.
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
	f := pathFinder{log: l, session: session, kept: new(keptEvents)}
	return f.find(ctx, seq, 0)
}

// onPath yields the events of r that are on the path which ends with the newest
// event of r.
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
			l.pathForward(ctx, session, end, from, yield)
		}
	}
}

// ownFrom is the later one of from and the session's first own event.
func (l *Log) ownFrom(ctx context.Context, session string, from int64) (int64, error) {
	first, err := l.firstEvent(ctx, session)
	return max(from, first.Seq), err
}

// pathBackward yields the path from seq end back to from, and reads no more than
// it yields, except where the path skips few events.
func (l *Log) pathBackward(ctx context.Context, session string, end, from int64, yield func(event.Event, error) bool) {
	for walk := (event.Walk{Next: end}); walk.Next >= from; {
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

const (
	// maxSkipped is how many events off the path are read and skipped, rather than
	// beginning another reading after them.
	maxSkipped = 256
	// maxKept is how many events of a path are kept from the reading that finds it.
	maxKept = 1024
)

// pathForward yields the path to seq end, oldest first, from event from on.
func (l *Log) pathForward(ctx context.Context, session string, end, from int64, yield func(event.Event, error) bool) {
	kept := &keptEvents{room: maxKept}
	path, err := (&pathFinder{log: l, session: session, kept: kept}).find(ctx, end, from)
	if err != nil {
		yield(event.Event{}, err)
		return
	}
	if kept.room > 0 {
		for _, e := range slices.Backward(kept.events) {
			if !yield(e, nil) {
				return
			}
		}
		return
	}
	for len(path) > 0 {
		n := nearStretches(path)
		if !l.stretches(ctx, session, path[:n], yield) {
			return
		}
		path = path[n:]
	}
}

// nearStretches is how many stretches, from the first on, have few events between
// them.
func nearStretches(path event.Path) int {
	n := 1
	for n < len(path) && path[n].From-path[n-1].To-1 <= maxSkipped {
		n++
	}
	return n
}

// stretches yields stretches of a path in one reading.
func (l *Log) stretches(ctx context.Context, session string, path event.Path, yield func(event.Event, error) bool) bool {
	for e, err := range l.lineage(ctx, session, Span{From: path[0].From, To: path[len(path)-1].To}, false) {
		if err == nil && e.Seq > path[0].To {
			path = path[1:]
		}
		if err == nil && e.Seq < path[0].From {
			continue
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// pathFinder follows a path back from its end.
type pathFinder struct {
	log     *Log
	session string
	kept    *keptEvents
}

// keptEvents keeps the events of a path, newest first, while there is room; none
// once there is not.
type keptEvents struct {
	events []event.Event
	room   int
}

func (k *keptEvents) add(e event.Event) {
	if k.room == 0 {
		return
	}
	if k.room--; k.room == 0 {
		k.events = nil
		return
	}
	k.events = append(k.events, e)
}

// find is the path to seq end, from event from on.
func (f *pathFinder) find(ctx context.Context, end, from int64) (path event.Path, err error) {
	for e, err := range f.backward(ctx, end, from) {
		if err != nil {
			return nil, err
		}
		f.kept.add(e)
		if n := len(path); n > 0 && path[n-1].From == e.Seq+1 {
			path[n-1].From = e.Seq
		} else {
			path = append(path, event.Stretch{From: e.Seq, To: e.Seq})
		}
	}
	slices.Reverse(path)
	return path, nil
}

func (f *pathFinder) backward(ctx context.Context, end, from int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		f.log.pathBackward(ctx, f.session, end, max(from, 1), yield)
	}
}
