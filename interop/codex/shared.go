package codex

import (
	"context"
	"errors"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
)

// shared are the events of a session, and of those that it was forked from,
// with which the copies that a fork's file begins with are compared, one after
// the other.
type shared struct {
	ids    []string // of the sessions
	events []sharedEvent
	index  map[interop.Key]int

	next int // behind the newest event that a copy was found of
	// point is where a fork can begin: all that was said before it was copied.
	point int64
	// talked: a message is before the point; heard: a copy of one was found.
	talked, heard bool
	// parted: a record was none of the copies.
	parted bool
}

type sharedEvent struct {
	seq, end int64 // end is the last event of its append
	talk     bool  // part of the conversation
	message  bool
}

// add takes in the next event.
func (s *shared) add(e *event.Event) {
	if s.index == nil {
		s.index = map[interop.Key]int{}
	}
	if !slices.Contains(s.ids, e.SessionID) {
		s.ids = append(s.ids, e.SessionID)
	}
	s.index[interop.KeyOf(e.ID)] = len(s.events)
	s.events = append(s.events, sharedEvent{e.Seq, e.Seq + int64(e.More()), isTalk(e.Type), e.Type.Name() == event.MessageAdded})
}

// isTalk reports whether events of a type shape what the model sees, or turns.
func isTalk(t event.Type) bool {
	switch t.Name() {
	case event.MessageAdded, event.ContextAdded, event.CompactionTriggered, event.HeadMoved, event.TurnStarted:
		return true
	}
	return false
}

// find looks for the event that the n-th of equal records became.
func (s *shared) find(l *line, n int) (at int, ok bool) {
	for _, id := range s.ids {
		if at, ok := s.index[interop.RecordKey(id, l.digest, n, ownPart)]; ok {
			return at, true
		}
	}
	return 0, false
}

// take reports whether the record is a copy, and the next one: nothing that was
// said may have been left out before it.
func (s *shared) take(l *line, n int) bool {
	if s.parted {
		return false
	}
	at, ok := s.find(l, n)
	if !ok || at < s.next || s.talks(s.next, at) {
		s.parted = true
		return false
	}
	s.next = at + 1
	s.heard = s.heard || s.events[at].message
	rest := s.next
	for rest < len(s.events) && s.events[rest].seq <= s.events[at].end {
		rest++
	}
	if !s.talks(s.next, rest) {
		s.point = s.events[at].end
		s.talked = s.heard
	}
	return true
}

// talks reports whether any of the events from..to-1 is conversation.
func (s *shared) talks(from, to int) bool {
	return slices.ContainsFunc(s.events[from:to], func(e sharedEvent) bool { return e.talk })
}

// parent is a session in the log that another comes from.
type parent struct {
	shared
	id       string
	children map[string]*child // by the ids of their calls
}

// openParent reads the session that another comes from; nil if the log does not
// have it, or it was not imported from Codex.
func openParent(ctx context.Context, log *eventlog.Log, id string) (*parent, error) {
	if event.CheckSessionID(id) != nil {
		return nil, nil
	}
	p := &parent{id: id}
	known := session{children: map[string]*child{}}
	s, err := interop.OpenSession(ctx, log, id, func(e *event.Event) error {
		p.add(e)
		if e.Type.Name() == event.SessionForked {
			known.forked()
		}
		c, ok, err := event.Decode[event.Child](e)
		if !ok || e.Redacted() {
			return nil
		}
		known.told(&c, e.Seq)
		return err
	})
	if err != nil || s.New() || s.Format != Name {
		return nil, err
	}
	p.children = known.children
	return p, nil
}

// call is the call that started the sub-agent with a session, and the seq of
// the event that says so.
func (p *parent) call(session string) (callID string, seq int64) {
	for id, c := range p.children {
		if c.session == session {
			return id, c.seq
		}
	}
	return "", 0
}

// fork makes the session of h a fork of the parent, where the two part; made is
// false where another import did so meanwhile.
func (p *parent) fork(ctx context.Context, log *eventlog.Log, h *header) (made bool, err error) {
	key := interop.FixedKey(h.id, "session_forked")
	reason := "forked in Codex"
	if h.spawnedBy != "" {
		reason = "a sub-agent"
	}
	_, err = fork.At(ctx, log, p.id, fork.AtSeq(p.point), fork.Options{
		ID: h.id, Label: h.labels["agent_nickname"], Reason: reason, Force: true, EventID: key.ID(h.at), Time: h.at,
	})
	if errors.Is(err, eventlog.ErrExists) {
		return false, nil
	}
	return err == nil, err
}
