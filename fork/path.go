package fork

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// backward yields the events of the path that ends at seq, newest first, and
// reads no more than it yields. Events are bare.
func backward(ctx context.Context, log *eventlog.Log, session string, seq int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for at := seq; at > 0; {
			var next int64
			for e, err := range log.Read(ctx, session, eventlog.Between(0, at).Backward().Bare()) {
				if !yield(e, err) || err != nil {
					return
				}
				if next, err = e.Parent(); err != nil {
					yield(event.Event{}, err)
					return
				}
				if next < e.Seq-1 {
					break
				}
			}
			at = next
		}
	}
}

// before yields the events of the path that ends with e but e itself, newest
// first.
func before(ctx context.Context, log *eventlog.Log, session string, e *event.Event) iter.Seq2[event.Event, error] {
	to, err := e.Parent()
	if err != nil {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, err) }
	}
	return backward(ctx, log, session, to)
}

// pathTo is the path that ends with the event at seq, in runs of seqs, oldest
// first. The session's head is at head.
func pathTo(ctx context.Context, log *eventlog.Log, session string, seq, head int64) (runs []event.Stretch, err error) {
	switch {
	case seq == head:
		return log.Path(ctx, session)
	case seq < 0 || seq > head:
		return nil, fmt.Errorf("event %d of session %q: %w: %w", seq, session, ErrPastHead, eventlog.ErrEventNotFound)
	}
	for e, err := range backward(ctx, log, session, seq) {
		if err != nil {
			return nil, err
		}
		if n := len(runs); n > 0 && runs[n-1].From == e.Seq+1 {
			runs[n-1].From = e.Seq
		} else {
			runs = append(runs, event.Stretch{From: e.Seq, To: e.Seq})
		}
	}
	slices.Reverse(runs)
	return runs, nil
}

// filled fetches the data of bare events of some types.
func filled(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error], types ...event.Type) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if err == nil && e.Data == nil && !e.Redacted() && slices.Contains(types, e.Type.Name()) {
				e, err = log.Event(ctx, session, e.Seq)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// structure is what of a payload is left when it is redacted.
func structure(e *event.Event) jsontext.Value {
	if e.Redacted() {
		return e.Kept()
	}
	return e.Data
}

// decodeStructure reads members of e's payload that redaction keeps.
func decodeStructure(e *event.Event, into any) error {
	if err := json.Unmarshal(structure(e), into); err != nil {
		return &eventlog.CorruptError{Session: e.SessionID, Offset: -1, Seq: e.Seq, Cause: err}
	}
	return nil
}
