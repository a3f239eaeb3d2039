package codex

import (
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// ancestry holds the events that a session shares with its ancestors. The first lines of
// a fork's file are copies of ancestor lines; match compares them with these events in
// order.
type ancestry struct {
	ids    []string // session ids
	events []ancestorEvent
	index  map[interop.Key]int

	next int // index after the newest event with a copy
	// forkPoint is the seq to fork at: the file has copies of all conversation before
	// it.
	forkPoint int64
	// hasMessage: a message with a copy comes before forkPoint. matchedMessage: a
	// message has a copy.
	hasMessage, matchedMessage bool
	// diverged is true after a record that is not a copy.
	diverged bool
}

type ancestorEvent struct {
	seq, end     int64 // end is the last event of its append
	conversation bool  // it is part of the conversation
	message      bool
}

// add indexes the next event.
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

// isConversation reports whether events of a type change the model's context or begin
// turns.
func isConversation(t event.Type) bool {
	switch t.Name() {
	case event.MessageAdded, event.ContextAdded, event.CompactionTriggered, event.HeadMoved, event.TurnStarted:
		return true
	}
	return false
}

// find returns the index of the event of the n-th equal record.
func (s *ancestry) find(l *line, n int) (at int, ok bool) {
	for _, id := range s.ids {
		if at, ok := s.index[interop.RecordKey(id, l.digest, n, ownPart)]; ok {
			return at, true
		}
	}
	return 0, false
}

// match reports whether the record is the next copy. It is not a copy if the file skips
// conversation before it.
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

// hasConversation reports whether one of the events from..to-1 is conversation.
func (s *ancestry) hasConversation(from, to int) bool {
	return slices.ContainsFunc(s.events[from:to], func(e ancestorEvent) bool { return e.conversation })
}
