package logtest

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// The model describes the content of a store and its logs in the simplest terms.

// modelEvent is an event of the model.
type modelEvent struct {
	event.Event
	session string
	results []string
	calls   []string
	move    int64 // target of a head_moved; -1 for other events
	more    int
}

// modelSession is a session of the model. A parent's events change only by redaction,
// which changes the shared modelEvents.
type modelSession struct {
	id     string
	parent *modelSession
	shared []*modelEvent // the lineage up to the fork point
	own    []*modelEvent
	head   event.Head
	tries  []modelAppend
}

// modelAppend is an accepted append.
type modelAppend struct {
	before, after event.Head
	events        []event.Event
}

func (s *modelSession) lineage() []*modelEvent { return slices.Concat(s.shared, s.own) }

func (s *modelSession) last() int64 { return int64(len(s.shared) + len(s.own)) }

// accept adds accepted events. head is the head after them.
func (s *modelSession) accept(fresh []*modelEvent, head event.Head) {
	for _, e := range fresh {
		e.session = s.id
	}
	s.own, s.head = append(s.own, fresh...), head
}

// find returns the event with the id of e.
func (s *modelSession) find(e *event.Event) *modelEvent {
	i := slices.IndexFunc(s.own, func(own *modelEvent) bool { return own.ID == e.ID })
	return s.own[i]
}

// modelPath returns the active path, oldest event first.
func modelPath(lineage []*modelEvent) (path []*modelEvent) {
	for at := int64(len(lineage)); at > 0; {
		e := lineage[at-1]
		path = append(path, e)
		if at--; e.move >= 0 {
			at = e.move
		}
	}
	slices.Reverse(path)
	return path
}

// modelPending returns the calls without a result on the active path.
func modelPending(lineage []*modelEvent) map[string]bool {
	pending := map[string]bool{}
	for _, e := range modelPath(lineage) {
		for _, id := range e.results {
			delete(pending, id)
		}
		for _, id := range e.calls {
			pending[id] = true
		}
	}
	return pending
}

// modelError returns the rule that e breaks after a lineage. It returns before if an
// earlier event of the append broke a rule.
func modelError(before error, lineage []*modelEvent, e *modelEvent) error {
	if before != nil {
		return before
	}
	if e.move > int64(len(lineage)) {
		return event.ErrInvalidTree
	}
	pending := modelPending(lineage)
	for _, id := range e.results {
		if !pending[id] {
			return event.OrphanResult
		}
	}
	return nil
}

// modelErases returns the events that a redaction changes, or the error of the
// redaction.
func modelErases(s *modelSession, seqs []int64) (erased []*modelEvent, err error) {
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(seqs))) {
		if seq > s.last() {
			return nil, eventlog.ErrEventNotFound
		}
		if seq <= int64(len(s.shared)) {
			return nil, event.ErrInvalidTree
		}
		e := s.own[seq-1-int64(len(s.shared))]
		if e.Data != nil {
			erased = append(erased, e)
		}
	}
	return erased, nil
}

func renderModel(events []*modelEvent) []string {
	lines := []string{}
	for _, e := range events {
		lines = append(lines, renderEvent(e.session, &e.Event))
	}
	return lines
}

func renderEvents(events []event.Event) []string {
	lines := []string{}
	for i := range events {
		lines = append(lines, renderEvent(events[i].SessionID, &events[i]))
	}
	return lines
}

func renderEvent(session string, e *event.Event) string {
	return fmt.Sprintf("%s %s %s %s %s", session, e.ID, e.Type, e.Metadata, e.Data)
}
