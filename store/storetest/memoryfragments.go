package storetest

import (
	"context"
	"iter"

	"github.com/convlog/convlog/eventlog"
)

// Fragments implements Salvager. Memory has no places, and lines are not
// damaged in it.
func (m *Memory) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		lines, _, err := m.snapshot(ctx, session)
		if err != nil {
			yield(eventlog.Fragment{}, err)
			return
		}
		for _, line := range lines {
			if err := m.usable(ctx); err != nil {
				yield(eventlog.Fragment{}, err)
				return
			}
			f := eventlog.Fragment{Path: "memory", Offset: -1, Bytes: int64(len(line)) + 1}
			f.Event, f.Err = eventlog.ParseLine(line, "")
			if !yield(f, nil) {
				return
			}
		}
	}
}
