package eventlog

import (
	"context"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// pathFinder finds a path and buffers its newest events. It reads backward until the
// start of the range, or until the end of a known path.
type pathFinder struct {
	known  knownPath
	end    event.Head  // the newest event of the path
	newer  event.Path  // the events before known, newest first
	joined bool        // the path continues with known
	buffer eventBuffer // the newest events of newer
	rest   event.Head  // the newest event of the path that is not in buffer
}

// find reads the path from seq from to seq end, and returns it.
func (f *pathFinder) find(ctx context.Context, l *Log, session string, end, from int64) (path event.Path, err error) {
	f.known = l.paths.get(session)
	l.pathBackward(ctx, session, end, from, func(e event.Event, failed error) bool {
		err = failed
		return err == nil && f.add(&e)
	})
	if err != nil {
		return nil, err
	}
	if f.joined {
		path = f.known.path.After(from - 1)
	}
	path = oldestFirst(path, f.newer)
	if from <= 1 {
		l.paths.put(session, knownPath{f.end, slices.Clone(path)})
	}
	return path, nil
}

// findByIndex finds the active path by its head_moved events, without reading the other events. ok
// is false if the store has no index of them, if the span is not the whole session, or if it is
// short or mostly known: find is as cheap then.
func (f *pathFinder) findByIndex(ctx context.Context, l *Log, session string, head event.Head, span Span) (path event.Path, ok bool) {
	if span.From > 1 || span.To != head.Seq || head.Seq-l.paths.get(session).end.Seq < minKnown {
		return nil, false
	}
	var newest event.Path
	next := head.Seq
	for e, err := range l.snapshots(ctx, session) {
		if err != nil || !engine.IsIndexed(e.Type) {
			return nil, false // find reports the error
		}
		if e.Type.Name() != event.HeadMoved || e.Seq > next {
			continue
		}
		newest = append(newest, event.Stretch{From: e.Seq, To: next})
		if next, err = e.Parent(); err != nil {
			return nil, false
		}
		if next == 0 {
			break
		}
	}
	if next > 0 {
		newest = append(newest, event.Stretch{From: 1, To: next})
	}
	f.rest = head
	return oldestFirst(nil, newest), true
}

// oldestFirst appends stretches, which are newest first, to a path.
func oldestFirst(path event.Path, newest event.Path) event.Path {
	for _, s := range slices.Backward(newest) {
		path = appendStretch(path, s)
	}
	return path
}

// add adds the next older event of the path. It returns false if the older events are
// known.
func (f *pathFinder) add(e *event.Event) bool {
	if f.end.IsZero() {
		f.end = e.Head()
	}
	f.joined = e.Head() == f.known.end
	if (f.joined || !f.buffer.add(e)) && f.rest.IsZero() {
		f.rest = e.Head()
	}
	if f.joined {
		return false
	}
	if n := len(f.newer); n > 0 && f.newer[n-1].From == e.Seq+1 {
		f.newer[n-1].From = e.Seq
	} else {
		f.newer = append(f.newer, event.Stretch{From: e.Seq, To: e.Seq})
	}
	return true
}

// unbuffered returns the part of the path before the buffered events.
func (f *pathFinder) unbuffered(path event.Path) event.Path {
	for i, s := range path {
		if f.buffer.count > 0 && s.To >= f.buffer.oldest {
			path = path[:i]
			if s.From < f.buffer.oldest {
				path = append(path, event.Stretch{From: s.From, To: f.buffer.oldest - 1})
			}
			break
		}
	}
	return path
}

// appendStretch appends a stretch, or makes the last stretch of the path longer.
func appendStretch(path event.Path, s event.Stretch) event.Path {
	if n := len(path); n > 0 && path[n-1].To == s.From-1 {
		path[n-1].To = s.To
		return path
	}
	return append(path, s)
}

// eventBuffer has the first events that were added, newest first, up to a number of bytes.
// Events of a store share memory with their neighbours, so the events that a path skips
// count too. The zero eventBuffer has no room.
type eventBuffer struct {
	blocks [][]event.Event
	count  int
	oldest int64 // the seq of the oldest event
	left   int64 // room, in bytes
}

const (
	// pathBuffer is how many bytes of events a forward reading of a path buffers.
	pathBuffer = 8 << 20
	// eventOverhead is about the size of an event without its line, in bytes.
	eventOverhead = 400
	// maxBlock is the number of events in a block of a long buffer.
	maxBlock = 64
)

// add adds an event, unless it or one before it had no room. It reports whether it did.
func (b *eventBuffer) add(e *event.Event) bool {
	skipped := int64(0)
	if b.count > 0 {
		skipped = min(b.oldest-e.Seq-1, maxSkipped)
	}
	if b.left -= (1 + skipped) * int64(len(e.Line())+eventOverhead); b.left < 0 {
		return false
	}
	n := len(b.blocks) - 1
	if n < 0 || len(b.blocks[n]) == cap(b.blocks[n]) {
		b.blocks = append(b.blocks, make([]event.Event, 0, min(max(b.count, 4), maxBlock)))
		n++
	}
	b.blocks[n] = append(b.blocks[n], *e)
	b.count++
	b.oldest = e.Seq
	return true
}

// yield yields the events, oldest first.
func (b *eventBuffer) yield(yield func(event.Event, error) bool) {
	for _, block := range slices.Backward(b.blocks) {
		for _, e := range slices.Backward(block) {
			if !yield(e, nil) {
				return
			}
		}
	}
}
