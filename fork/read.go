package fork

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// pathBack yields the path that ends with event seq, newest first. It reads no
// more than it yields. Only events of the given types have spilled data.
func pathBack(ctx context.Context, log *eventlog.Log, session string, seq int64, types ...event.Type) iter.Seq2[event.Event, error] {
	if seq == 0 {
		return func(func(event.Event, error) bool) {}
	}
	return readBare(ctx, log, session, eventlog.Between(0, seq).OnPath().Backward(), types...)
}

// readBare reads bare events, and fetches the spilled data of some types.
func readBare(ctx context.Context, log *eventlog.Log, session string, r eventlog.Range, types ...event.Type) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range log.Read(ctx, session, r.Bare()) {
			if err == nil && e.Data == nil && !e.Redacted() && slices.Contains(types, e.Type.Name()) {
				e, err = log.Event(ctx, session, e.Seq)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// firstOwn is the first event that a session itself holds.
func firstOwn(ctx context.Context, log *eventlog.Log, session string) (event.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Own().Bare()) {
		return e, err
	}
	return event.Event{}, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
}

// one is the options of a call: the first of opts, or the zero options.
func one[O any](opts []O) (o O) {
	if len(opts) > 0 {
		o = opts[0]
	}
	return o
}
