package codex

import (
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// shared are the events of a session, and of those that it was forked from,
// with which the copies that a fork's file begins with are compared, one after
// the other.
type ancestry struct {
	ids    []string // of the sessions
	events []ancestorEvent
	index  map[interop.Key]int

	next int // behind the newest event that a copy was found of
	// point is where a fork can begin: all that was said before it was copied.
	forkPoint int64
	// talked: a message is before the point; heard: a copy of one was found.
	hasMessage, matchedMessage bool
	// parted: a record was none of the copies.
	diverged bool
}

type ancestorEvent struct {
	seq, end     int64 // end is the last event of its append
	conversation bool  // part of the conversation
	message      bool
}

// add takes in the next event.
func (s *ancestry) add(e *event.Event) {
	if s.index == nil {
		s.index = map[interop.Key]int{}
	}
	if !slices.Contains(s.ids, e.SessionID) {
		s.ids = append(s.ids, e.SessionID)
	}
	s.index[interop.KeyOf(e.ID)] = len(s.events)
	s.events = append(s.events, ancestorEvent{e.Seq, e.Seq + int64(e.More()), isConversation(e.Type), e.Type.Name() == event.MessageAdded})
}

// isTalk reports whether events of a type shape what the model sees, or turns.
func isConversation(t event.Type) bool {
	switch t.Name() {
	case event.MessageAdded, event.ContextAdded, event.CompactionTriggered, event.HeadMoved, event.TurnStarted:
		return true
	}
	return false
}

// find looks for the event that the n-th of equal records became.
func (s *ancestry) find(l *line, n int) (at int, ok bool) {
	for _, id := range s.ids {
		if at, ok := s.index[interop.RecordKey(id, l.digest, n, ownPart)]; ok {
			return at, true
		}
	}
	return 0, false
}

// take reports whether the record is a copy, and the next one: nothing that was
// said may have been left out before it.
func (s *ancestry) match(l *line, n int) bool {
	if s.diverged {
		return false
	}
	at, ok := s.find(l, n)
	if !ok || at < s.next || s.hasConversation(s.next, at) {
		s.diverged = true
		return false
	}
	s.next = at + 1
	s.matchedMessage = s.matchedMessage || s.events[at].message
	rest := s.next
	for rest < len(s.events) && s.events[rest].seq <= s.events[at].end {
		rest++
	}
	if !s.hasConversation(s.next, rest) {
		s.forkPoint = s.events[at].end
		s.hasMessage = s.matchedMessage
	}
	return true
}

// talks reports whether any of the events from..to-1 is conversation.
func (s *ancestry) hasConversation(from, to int) bool {
	return slices.ContainsFunc(s.events[from:to], func(e ancestorEvent) bool { return e.conversation })
}
