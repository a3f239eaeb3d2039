package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// Range selects events of a lineage, and the order they come in.
type Range struct {
	span  Span
	last  int
	until ulid.ULID
	own   bool
	bare  bool
}

// All is the whole lineage, oldest first.
var All Range

// From selects the events from seq on.
func From(seq int64) Range { return Range{span: Span{From: seq}} }

// Between selects the events from seq from to seq to, both included; 0 leaves a
// side open.
func Between(from, to int64) Range { return Range{span: Span{From: from, To: to}} }

// Last selects the newest n events. They come oldest first all the same.
func Last(n int) Range { return Range{last: max(n, 0), span: Span{Limit: -1}} }

// Until selects the events up to and including the one with id; backward, from
// the newest back to it. The sequence ends with ErrEventNotFound if there is
// no such event.
func Until(id ulid.ULID) Range { return Range{until: id} }

// Backward yields newest first.
func (r Range) Backward() Range {
	r.span.Backward = true
	return r
}

// Own leaves out the events that a fork shares with its parent.
func (r Range) Own() Range {
	r.own = true
	return r
}

// Bare leaves spilled data where it is: such events have no Data (Event.Spilled
// tells), and are read although their blob may be missing.
func (r Range) Bare() Range {
	r.bare = true
	return r
}

// Below this many events, Last reads backwards and turns them round.
const lastBuffered = 1024

// Read yields the events of r, with their data resolved from blobs and upcast,
// consistent with the head at the start of the iteration. A fork's shared
// prefix is read through its parents. A missing session is ErrNotFound; damage
// a *CorruptError. After an error the sequence ends. Only what is yielded is
// read. The events may be kept; their bytes must not be modified.
func (l *Log) Read(ctx context.Context, session string, r Range) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := l.readable(ctx, session); err != nil {
			yield(Event{}, err)
			return
		}
		events := l.lineage(ctx, session, r)
		if r.span.Limit < 0 {
			events = l.last(ctx, session, r)
		}
		found := false
		for e, err := range events {
			if err == nil && l.unresolved(&e) && !(r.bare && e.spilledAway()) {
				e, err = l.resolved(ctx, e)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			found = r.until != (ulid.ULID{}) && e.ID == r.until
			if !yield(e, nil) {
				return
			}
			if found {
				return
			}
		}
		if r.until != (ulid.ULID{}) {
			yield(Event{}, fmt.Errorf("read session %q until %v: %w", session, r.until, ErrEventNotFound))
		}
	}
}

func (l *Log) readable(ctx context.Context, session string) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	return CheckSessionID(session)
}

// last yields the newest r.last events.
func (l *Log) last(ctx context.Context, session string, r Range) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		n, backward := r.last, r.span.Backward
		if n == 0 {
			if _, err := l.Head(ctx, session); err != nil {
				yield(Event{}, err)
			}
			return
		}
		r.span = Span{Backward: true, Limit: n}
		if !backward && n > lastBuffered {
			head, err := l.Head(ctx, session)
			if err != nil {
				yield(Event{}, err)
				return
			}
			r.span = Span{From: max(head.Seq-int64(n)+1, 1), To: head.Seq}
			backward = true
		}
		if backward {
			l.lineage(ctx, session, r)(yield)
			return
		}
		var events []Event
		for e, err := range l.lineage(ctx, session, r) {
			if err != nil {
				yield(Event{}, err)
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

// unresolved reports whether resolve may change e. Most events it does not, and
// they cost no allocation.
func (l *Log) unresolved(e *Event) bool {
	return len(l.opts.Upcasters) > 0 || e.rare != nil && e.rare.digest != ""
}

// spilledAway reports whether e's data is in a blob and was not fetched.
func (e *Event) spilledAway() bool {
	_, _, spilled := e.Spilled()
	return spilled && e.Data == nil
}

func (l *Log) resolved(ctx context.Context, e Event) (Event, error) {
	if err := l.resolve(ctx, &e); err != nil {
		return Event{}, err
	}
	return e, nil
}

// resolve fetches spilled data and upcasts.
func (l *Log) resolve(ctx context.Context, e *Event) error {
	if err := l.fetch(ctx, e); err != nil {
		return err
	}
	return Upcast(e, l.opts.Upcasters...)
}

// fetch reads the data of a spilled event.
func (l *Log) fetch(ctx context.Context, e *Event) error {
	if e.rare != nil && e.rare.digest != "" && e.Data == nil {
		data, err := l.readBlob(ctx, e.rare.digest)
		if errors.Is(err, ErrBlobNotFound) && l.erasedSince(ctx, e) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("data of event %d of session %q: %w", e.Seq, e.SessionID, err)
		}
		e.Data = jsontext.Value(data)
	}
	return nil
}

// erasedSince reports whether a blob of e is gone because e was redacted after
// it was read. e is then what is left of it.
func (l *Log) erasedSince(ctx context.Context, e *Event) bool {
	for now, err := range l.store.Read(ctx, e.SessionID, Span{From: e.Seq, To: e.Seq}) {
		if err != nil || !now.Redacted() || now.Hash() != e.Hash() {
			return false
		}
		*e = now
		return true
	}
	return false
}

// Head is the session's newest event's position. A missing session is
// ErrNotFound.
func (l *Log) Head(ctx context.Context, session string) (Head, error) {
	e, err := l.newest(ctx, session)
	return e.Head(), err
}

func (l *Log) newest(ctx context.Context, session string) (Event, error) {
	if err := l.readable(ctx, session); err != nil {
		return Event{}, err
	}
	for e, err := range l.store.Read(ctx, session, Span{Backward: true, Limit: 1}) {
		return e, err
	}
	return Event{}, fmt.Errorf("read head of session %q: %w", session, ErrNotFound)
}

// Event reads one event of the lineage; ErrEventNotFound if there is none.
func (l *Log) Event(ctx context.Context, session string, seq int64) (Event, error) {
	e, err := l.rawEvent(ctx, session, seq)
	if err != nil {
		return Event{}, err
	}
	return e, l.resolve(ctx, &e)
}

func (l *Log) rawEvent(ctx context.Context, session string, seq int64) (Event, error) {
	if err := l.readable(ctx, session); err != nil {
		return Event{}, err
	}
	if seq > 0 {
		for e, err := range l.lineage(ctx, session, Between(seq, seq)) {
			return e, err
		}
	}
	if _, err := l.Head(ctx, session); err != nil {
		return Event{}, err
	}
	return Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, ErrEventNotFound)
}

// Sessions yields every session of the store, ordered by id. A damaged session
// is listed with its error, and the listing goes on.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := l.usable(ctx); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		l.store.Sessions(ctx)(yield)
	}
}

// readBlob reads and checks a whole blob.
func (l *Log) readBlob(ctx context.Context, d Digest) ([]byte, error) {
	r, err := l.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r)
	return body, errors.Join(err, r.Close())
}
