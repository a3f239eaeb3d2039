package codex

import (
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// ancestry holds the events that a session shares with its ancestors. The first lines of
// a fork's file are copies of ancestor lines; match compares them with these events in
// order.
type ancestry struct {
	events  []ancestorEvent
	digests map[event.Digest][]int // indexes of the events, by the key of their records

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
	inherited    bool // another session owns the record
	// shape is the shape of a redacted event; nil for others.
	shape *sessions.Shape
	found bool // by a record of the file
}

// add indexes the next event.
func (s *ancestry) add(e *event.Event) (err error) {
	if s.digests == nil {
		s.digests = map[event.Digest][]int{}
	}
	next := ancestorEvent{
		seq: e.Seq, end: e.Seq + int64(e.More()), conversation: isConversation(e.Type), message: e.Type.Name() == event.MessageAdded,
		inherited: e.Inherited(),
	}
	if d := records.DigestOf(e); d != "" {
		s.digests[d] = append(s.digests[d], len(s.events))
	}
	if e.Redacted() && sessions.IsCounted(e) {
		shape, err := sessions.KeptShape(e)
		if err != nil {
			return err
		}
		next.shape = &shape
	}
	s.events = append(s.events, next)
	return nil
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

// find finds the event of a record, and its index: the first one from the index on that no
// record has found. It has the key of the record, or it is redacted and has the shape. Without
// a shape, redacted events are no event of the record.
func (s *ancestry) find(l *line, from int, shape func() sessions.Shape) (m sessions.Match, at int) {
	at = len(s.events)
	for _, i := range s.digests[l.rec.Key] {
		if i >= from && !s.events[i].found {
			at = i
			break
		}
	}
	var is *sessions.Shape
	for i := from; i < at; i++ {
		e := &s.events[i]
		if e.shape == nil || e.found || shape == nil {
			continue
		}
		if is == nil {
			read := shape()
			is = &read
		}
		if is.Fits(e.shape) {
			at, m.Withheld = i, true
			break
		}
	}
	if at == len(s.events) {
		return sessions.Match{}, 0
	}
	s.events[at].found = true
	m.Seq = s.events[at].seq
	return m, at
}

// match finds the event of the record, if the record is the next copy. It is not a copy if
// the file skips conversation before it.
func (s *ancestry) match(l *line, shape func() sessions.Shape) sessions.Match {
	if s.diverged {
		return sessions.Match{}
	}
	m, at := s.find(l, s.next, shape)
	if m.Seq == 0 || s.hasConversation(s.next, at) {
		s.diverged = true
		return sessions.Match{}
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
	return m
}

// hasConversation reports whether one of the events from..to-1 is conversation.
func (s *ancestry) hasConversation(from, to int) bool {
	return slices.ContainsFunc(s.events[from:to], func(e ancestorEvent) bool { return e.conversation })
}
