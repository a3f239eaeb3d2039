package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Read yields the events of r that are stored when the iteration begins. It fetches
// their data from blobs and upcasts it. It reads the shared events of a fork from the
// parents. A missing session is ErrNotFound, and so is a session that is removed while
// Read reads a long path; damage is a *CorruptError. The first error ends the sequence.
//
// Read reads no more events than it yields, with one exception: it follows a path back
// from its end first. The caller may keep the events, and must not modify their bytes.
func (l *Log) Read(ctx context.Context, session string, r Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.readable(ctx, session); err != nil {
			yield(event.Event{}, err)
			return
		}
		for e, err := range l.selectEvents(ctx, session, r) {
			if err == nil && l.needsResolve(&e) && !(r.bare && e.Data == nil) {
				e, err = l.resolveCopy(ctx, e)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !yield(e, nil) || r.until != (ulid.ULID{}) && e.ID == r.until {
				return
			}
		}
		if r.until != (ulid.ULID{}) {
			yield(event.Event{}, fmt.Errorf("read session %q until %v: %w", session, r.until, ErrEventNotFound))
		}
	}
}

// selectEvents yields the events of r as they are stored.
func (l *Log) selectEvents(ctx context.Context, session string, r Range) iter.Seq2[event.Event, error] {
	if r.last >= 0 {
		return l.lastEvents(ctx, session, r)
	}
	if r.path {
		return l.onPath(ctx, session, r)
	}
	return l.lineage(ctx, session, r.span, r.own)
}

// lastBuffered is the largest number of events that Last buffers to reverse them.
const lastBuffered = 1024

// lastEvents yields the newest r.last events.
func (l *Log) lastEvents(ctx context.Context, session string, r Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		n, forward := r.last, !r.span.Backward
		if n == 0 || forward && n > lastBuffered && !r.path {
			head, err := l.Head(ctx, session)
			if err != nil || n == 0 {
				if err != nil {
					yield(event.Event{}, err)
				}
				return
			}
			l.lineage(ctx, session, Span{From: max(head.Seq-int64(n)+1, 1), To: head.Seq}, r.own)(yield)
			return
		}
		r.last, r.span = -1, Span{Backward: true, Limit: n}
		newest := first(n, l.selectEvents(ctx, session, r))
		if !forward {
			newest(yield)
			return
		}
		var events []event.Event
		for e, err := range newest {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			events = append(events, e)
		}
		for _, e := range slices.Backward(events) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// first yields the first n events of a sequence.
func first(n int, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		left := n
		for e, err := range events {
			if !yield(e, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// needsResolve reports whether resolve may change e. Most events need no resolve, and
// so no allocation.
func (l *Log) needsResolve(e *event.Event) bool {
	if len(l.opts.Upcasters) > 0 {
		return true
	}
	_, _, spilled := e.Spilled()
	return spilled
}

// resolveCopy is resolve for a copy of e: e itself then stays off the heap.
func (l *Log) resolveCopy(ctx context.Context, e event.Event) (event.Event, error) {
	if err := l.resolve(ctx, &e); err != nil {
		return event.Event{}, err
	}
	return e, nil
}

// resolve fetches spilled data and upcasts the payload.
func (l *Log) resolve(ctx context.Context, e *event.Event) error {
	if err := l.fetch(ctx, e); err != nil {
		return err
	}
	return e.Upcast(l.opts.Upcasters...)
}

// fetch reads the data of a spilled event.
func (l *Log) fetch(ctx context.Context, e *event.Event) error {
	digest, _, spilled := e.Spilled()
	if !spilled || e.Data != nil {
		return nil
	}
	data, err := l.readBlob(ctx, digest)
	if errors.Is(err, ErrBlobNotFound) && l.erasedSince(ctx, e) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	e.Data = jsontext.Value(data)
	return nil
}

// erasedSince reports whether e was redacted after it was read, so that its blob is
// missing. Then e becomes the redacted event.
func (l *Log) erasedSince(ctx context.Context, e *event.Event) bool {
	for now, err := range l.store.Read(ctx, e.SessionID, Span{From: e.Seq, To: e.Seq}) {
		if err != nil || !now.Redacted() || now.Hash() != e.Hash() {
			return false
		}
		*e = now
		return true
	}
	return false
}

// Head returns the seq and hash of the session's newest event. A missing session is
// ErrNotFound.
func (l *Log) Head(ctx context.Context, session string) (event.Head, error) {
	if err := l.readable(ctx, session); err != nil {
		return event.Head{}, err
	}
	for e, err := range l.store.Read(ctx, session, Span{Backward: true, Limit: 1}) {
		return e.Head(), err
	}
	return event.Head{}, fmt.Errorf("read head of session %q: %w", session, ErrNotFound)
}

// Event returns event seq of the session, with its data fetched and upcast. It finds
// events that a fork shares with its parents. A missing event is ErrEventNotFound.
func (l *Log) Event(ctx context.Context, session string, seq int64) (event.Event, error) {
	e, err := l.bareEvent(ctx, session, seq)
	if err != nil {
		return event.Event{}, err
	}
	return e, l.resolve(ctx, &e)
}

// bareEvent is Event without spilled data and without upcasts.
func (l *Log) bareEvent(ctx context.Context, session string, seq int64) (event.Event, error) {
	if err := l.readable(ctx, session); err != nil {
		return event.Event{}, err
	}
	if seq > 0 {
		for e, err := range l.lineage(ctx, session, Span{From: seq, To: seq}, false) {
			return e, err
		}
	}
	if _, err := l.Head(ctx, session); err != nil {
		return event.Event{}, err
	}
	return event.Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
}
