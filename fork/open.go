package fork

import (
	"context"
	"fmt"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// checkPoint refuses a fork at e inside an append or, without force, inside an open
// turn.
func checkPoint(ctx context.Context, log *eventlog.Log, session string, e *event.Event, force bool) error {
	if e.More() > 0 {
		return fmt.Errorf("event %d of session %q: %w", e.Seq, session, errInsideAppend)
	}
	if force {
		return nil
	}
	found, err := findOpen(ctx, log, session, e.Seq)
	if err != nil {
		return fmt.Errorf("find an open turn of session %q at event %d: %w", session, e.Seq, err)
	}
	if found.isOpen() {
		return fmt.Errorf("event %d of session %q: %w%s", e.Seq, session, errOpenTurn, found)
	}
	return nil
}

// OpenCall is a tool call that has no result.
type OpenCall struct {
	CallID string
	Name   string // empty if the message was redacted
	Seq    int64  // of the message that makes the call
}

func (c OpenCall) String() string {
	text := strconv.Quote(c.CallID)
	if c.Name != "" {
		text += " of " + c.Name
	}
	return fmt.Sprintf("%s (#%d)", text, c.Seq)
}

// openTurn is the open turn at an event; zero if there is none.
type openTurn struct {
	calls []OpenCall // the calls without a result of one message
	start int64      // the turn_started or turn_resumed, if no call is open
}

func (o openTurn) isOpen() bool { return len(o.calls) > 0 || o.start > 0 }

// String is the end of an error message.
func (o openTurn) String() string {
	switch {
	case len(o.calls) == 1:
		return fmt.Sprintf(": call %s has no result there", o.calls[0])
	case len(o.calls) > 1:
		return fmt.Sprintf(": call %s and %d more have no result there", o.calls[0], len(o.calls)-1)
	}
	return fmt.Sprintf(", which #%d began", o.start)
}

// findOpen finds the turn that is open at event seq, on the path that ends there.
// It reads backward to the newest event that decides: a turn_started, a turn_resumed
// or a call without a result opens the turn, a turn_completed or turn_hibernated
// ends it.
//
// Imports have no turn events. There, the search ends with the exchange that seq is
// in, after minSearch user messages that follow each other, after minSearch forks, or
// after maxSearch events. It reads minSearch events at least.
func findOpen(ctx context.Context, log *eventlog.Log, session string, seq int64) (openTurn, error) {
	s := openSearch{answered: map[string]bool{}}
	for e, err := range pathBack(ctx, log, session, seq, event.MessageAdded) {
		if err != nil {
			return openTurn{}, err
		}
		decided, err := s.addOlder(&e)
		if err != nil || decided {
			return s.found, err
		}
		if s.hasTurns || s.read < minSearch || !s.exchange && s.read < maxSearch {
			continue
		}
		if s.hasTurns, err = hasTurns(ctx, log, session); err != nil || !s.hasTurns {
			return openTurn{}, err
		}
	}
	return openTurn{}, nil
}

const (
	// minSearch is how many events are searched for a turn event, at least.
	minSearch = 16
	// maxSearch is the largest number of events that are searched in a session without
	// turn events.
	maxSearch = 1024
)

// openSearch reads a path backward.
type openSearch struct {
	answered map[string]bool // calls whose results came so far
	asking   int             // the number of user messages that the messages so far begin with
	exchange bool            // the events so far hold the start of an exchange, or enough others
	read     int             // how many events came
	forks    int             // how many of them are session_forked events
	hasTurns bool            // the session is known to have turn events
	found    openTurn
}

// addOlder adds the event before those so far. decided means that s.found is final.
func (s *openSearch) addOlder(e *event.Event) (decided bool, err error) {
	s.read++
	switch e.Type.Name() {
	case event.TurnStarted, event.TurnResumed:
		s.found.start = e.Seq
		return true, nil
	case event.TurnCompleted, event.TurnHibernated:
		return true, nil
	case event.MessageAdded:
		return s.addMessage(e)
	case event.SessionForked:
		s.forks++
		s.exchange = s.exchange || s.forks == minSearch
	}
	return false, nil
}

func (s *openSearch) addMessage(e *event.Event) (decided bool, err error) {
	o, _, err := event.OutlineOf(e)
	if err != nil {
		return false, err
	}
	for _, c := range o.Calls {
		if !s.answered[c.ID] {
			s.found.calls = append(s.found.calls, OpenCall{CallID: c.ID, Name: c.Name, Seq: e.Seq})
		}
	}
	if s.found.isOpen() {
		return true, nil
	}
	for _, id := range o.Results {
		s.answered[id] = true
	}
	if o.Context {
		return false, nil
	}
	if o.Asks() {
		s.asking++
		s.exchange = s.exchange || s.asking == minSearch
	} else {
		s.exchange = s.exchange || s.asking > 0
		s.asking = 0
	}
	return false, nil
}

// hasTurns reports whether the session's own events have a turn_started before
// their first assistant message.
func hasTurns(ctx context.Context, log *eventlog.Log, session string) (bool, error) {
	read := 0
	for e, err := range readBare(ctx, log, session, eventlog.All().Own(), event.MessageAdded) {
		if err != nil {
			return false, err
		}
		if e.Type.Name() == event.TurnStarted {
			return true, nil
		}
		o, _, err := event.OutlineOf(&e)
		if read++; err != nil || o.Role == event.Assistant || read == minSearch {
			return false, err
		}
	}
	return false, nil
}
