package replay

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Lineage yields the lineage of one session, oldest first, of events of
// several, such as Lines gives of an export: the parents of a fork up to the fork
// points, and its own events. Events of one session must come in order. An
// empty session is that of the last event. The events are kept in memory first. A
// session that is not there, or a parent, is ErrNotFound; see Check for the
// rest.
func Lineage(events iter.Seq2[event.Event, error], session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		sessions, last, err := bySession(events)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		if session == "" {
			session = last
		}
		if session == "" {
			return
		}
		lineage, err := sessions.lineage(session)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		Check(Of(lineage...), Options{Session: session, All: true, Whole: true})(yield)
	}
}

// sessions are the own events of each session, in order.
type sessions map[string][]event.Event

// bySession sorts events by session; last is the session of the last one.
func bySession(events iter.Seq2[event.Event, error]) (all sessions, last string, err error) {
	all = sessions{}
	for e, err := range events {
		if err != nil {
			return nil, "", err
		}
		last = e.SessionID
		all[last] = append(all[last], e)
	}
	return all, last, nil
}

// lineage strings a session together with what it shares with its ancestors.
func (all sessions) lineage(session string) ([]event.Event, error) {
	var stretches [][]event.Event
	seen := map[string]bool{}
	for to := int64(math.MaxInt64); to > 0; {
		own := all[session]
		if len(own) == 0 {
			return nil, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
		}
		first := &own[0]
		if seen[session] {
			return nil, wrong(first, ErrCycle, "its session is its own ancestor")
		}
		seen[session] = true
		stretches = append(stretches, upTo(own, to))
		f, _, err := event.Decode[event.Fork](first)
		if err != nil {
			return nil, err
		}
		// A fork point may lie in what the parent shares with its own parent.
		session, to = f.Parent, min(to, f.Seq)
	}
	slices.Reverse(stretches)
	return slices.Concat(stretches...), nil
}

// upTo is what comes no later than seq.
func upTo(events []event.Event, seq int64) []event.Event {
	for i := range events {
		if events[i].Seq > seq {
			return events[:i]
		}
	}
	return events
}
