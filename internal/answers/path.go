package answers

import (
	"context"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// PathMarker finds the orphaned events of a session. It reads the active path back
// from the head, and little farther than the oldest event that it is asked for.
type PathMarker struct {
	Log     *eventlog.Log
	Session string

	path  []event.Stretch // newest first
	begun bool
	next  int64 // the next event of the path
}

// Orphaned reports whether an event counts on a path only, and is not on the active
// path. A nil marker finds none.
func (m *PathMarker) Orphaned(ctx context.Context, e *event.Event) (bool, error) {
	if m == nil || e.Type.Scope() != event.PathScope {
		return false, nil
	}
	if !m.begun || e.Seq <= m.next {
		if err := m.read(ctx, e.Seq); err != nil {
			return false, err
		}
	}
	_, found := slices.BinarySearchFunc(m.path, e.Seq, func(s event.Stretch, seq int64) int {
		switch {
		case seq > s.To:
			return 1
		case seq < s.From:
			return -1
		}
		return 0
	})
	return !found, nil
}

// markAhead is how many events a PathMarker reads ahead: the hits of a search come newest first.
const markAhead = 256

// read continues the path back to event from, or farther.
func (m *PathMarker) read(ctx context.Context, from int64) error {
	for e, err := range m.Log.Read(ctx, m.Session, eventlog.Between(max(1, from-markAhead), m.next).OnPath().Backward().Bare()) {
		if err == nil {
			m.begun = true
			m.next, err = e.Parent()
		}
		if err != nil {
			return err
		}
		if n := len(m.path); n > 0 && m.path[n-1].From == e.Seq+1 {
			m.path[n-1].From = e.Seq
		} else {
			m.path = append(m.path, event.Stretch{From: e.Seq, To: e.Seq})
		}
	}
	return nil
}
