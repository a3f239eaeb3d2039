package suite

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Overwriting is a store whose transient reads overwrite an event when the caller asks
// for the next one. A caller that keeps bytes of such a read then gets wrong results.
type Overwriting struct{ eventlog.Store }

// Unwrap returns the store, for eventlog.As.
func (s Overwriting) Unwrap() eventlog.Store { return s.Store }

// Read implements eventlog.Store.
func (s Overwriting) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return overwriting(r, s.Store.Read(ctx, session, r))
}

// ReadLines implements eventlog.LineReader.
func (s Overwriting) ReadLines(ctx context.Context, session string, r eventlog.Span, wanted func(line []byte) bool) iter.Seq2[event.Event, error] {
	lines, ok := eventlog.As[eventlog.LineReader](s.Store)
	if !ok {
		return s.Read(ctx, session, r)
	}
	return overwriting(r, lines.ReadLines(ctx, session, r, wanted))
}

func overwriting(r eventlog.Span, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if !r.Transient || err != nil {
				if !yield(e, err) {
					return
				}
				continue
			}
			own := e.Clone()
			if !yield(own, nil) {
				return
			}
			overwrite(&own)
		}
	}
}

// OverwritingSalvager is an Overwriting that overwrites the events of fragments too. The
// store must be a Salvager.
type OverwritingSalvager struct{ Overwriting }

// Fragments implements eventlog.Salvager.
func (s OverwritingSalvager) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		for f, err := range s.salvager().Fragments(ctx, session) {
			f.Event = f.Event.Clone()
			more := yield(f, err)
			overwrite(&f.Event)
			if !more {
				return
			}
		}
	}
}

// Replace implements eventlog.Salvager.
func (s OverwritingSalvager) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (string, error) {
	return s.salvager().Replace(ctx, session, at, events)
}

func (s OverwritingSalvager) salvager() eventlog.Salvager {
	salvager, _ := eventlog.As[eventlog.Salvager](s.Store)
	return salvager
}

func overwrite(e *event.Event) {
	for _, b := range [][]byte{e.Line(), e.Data, e.Metadata, e.Extras(), e.Kept()} {
		clear(b)
	}
}
