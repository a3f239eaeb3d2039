package fork

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// checkPoint refuses a fork behind e where it would tear something apart.
func checkPoint(ctx context.Context, log *eventlog.Log, session string, e *event.Event, force bool) error {
	if e.More() > 0 {
		return fmt.Errorf("event %d of session %q: %w", e.Seq, session, ErrInsideAppend)
	}
	if force || e.Seq == 0 {
		return nil
	}
	found, err := findOpen(ctx, log, session, e)
	if err != nil {
		return fmt.Errorf("is a turn of session %q open at %d: %w", session, e.Seq, err)
	}
	if found.isOpen {
		return fmt.Errorf("event %d of session %q: %w%s", e.Seq, session, ErrOpenTurn, found)
	}
	return nil
}

// OpenCall is a tool call that has no result.
type OpenCall struct {
	CallID string
	Name   string // empty where the message was redacted
	Seq    int64  // of the message
}

func (c OpenCall) String() string {
	text := strconv.Quote(c.CallID)
	if c.Name != "" {
		text += " of " + c.Name
	}
	return fmt.Sprintf("%s (#%d)", text, c.Seq)
}

// openCalls are the calls without a result behind the event seq, on the path that
// ends with it: those of the newest message that has any, in a turn under way.
func openCalls(ctx context.Context, log *eventlog.Log, session string, seq int64) ([]OpenCall, error) {
	if seq == 0 {
		return nil, nil
	}
	e, err := log.Event(ctx, session, seq)
	if err != nil {
		return nil, err
	}
	found, err := findOpen(ctx, log, session, &e)
	return found.calls, err
}

// whatIsOpen is what is under way at a place.
type whatIsOpen struct {
	isOpen bool
	calls  []OpenCall // without a result
	turn   int64      // the event that began or resumed the turn
}

// String says what it is, as the end of an error.
func (w whatIsOpen) String() string {
	switch {
	case len(w.calls) == 1:
		return fmt.Sprintf(": call %s has no result there", w.calls[0])
	case len(w.calls) > 1:
		return fmt.Sprintf(": call %s and %d more have no result there", w.calls[0], len(w.calls)-1)
	}
	return fmt.Sprintf(", which #%d began", w.turn)
}

// findOpen looks whether a turn is under way behind at, on the path that ends
// with it. The nearest turn event decides: one that starts or resumes a turn
// opens it, one that completes or hibernates it closes it. Before one is met, a
// call without a result does so too.
//
// Imports have no turn events. The search ends there at the first message of
// the user's that begins an exchange, once it has gone back far enough.
func findOpen(ctx context.Context, log *eventlog.Log, session string, at *event.Event) (whatIsOpen, error) {
	var s openSearch
	if verdict, err := s.older(at); err != nil || verdict != undecided {
		return s.found, err
	}
	for e, err := range filled(ctx, log, session, before(ctx, log, session, at), event.MessageAdded) {
		if err != nil {
			return s.found, err
		}
		verdict, err := s.older(&e)
		if err != nil || verdict != undecided {
			return s.found, err
		}
		if s.asked || !s.between || s.read < enoughEvents {
			continue
		}
		turned, err := usesTurns(ctx, log, session)
		if err != nil || !turned {
			return s.found, err
		}
		s.asked = true // a turn event will come
	}
	return s.found, nil
}

// enoughEvents is how far back turn events are looked for, at least.
const enoughEvents = 16

type verdict int

const (
	undecided verdict = iota
	open
	closed
)

// openSearch is fed a path from its end back.
type openSearch struct {
	ended   []string // calls whose results came so far
	asking  bool     // the message behind is one of the user's that asks
	between bool     // the events so far begin with an exchange
	read    int      // how many events came
	asked   bool     // whether the session uses turns: it does
	found   whatIsOpen
}

// older takes in the event before those so far.
func (s *openSearch) older(e *event.Event) (verdict, error) {
	s.read++
	switch e.Type.Name() {
	case event.TurnStarted, event.TurnResumed:
		s.found = whatIsOpen{isOpen: true, turn: e.Seq}
		return open, nil
	case event.TurnCompleted, event.TurnHibernated:
		return closed, nil
	case event.MessageAdded:
		return s.message(e)
	}
	return undecided, nil
}

func (s *openSearch) message(e *event.Event) (verdict, error) {
	m, _, err := speechOf(e)
	if err != nil {
		return undecided, err
	}
	for _, id := range m.Calls {
		if !slices.Contains(s.ended, id) {
			s.found.calls = append(s.found.calls, OpenCall{CallID: id, Name: m.name(id), Seq: e.Seq})
		}
	}
	if s.found.isOpen = len(s.found.calls) > 0; s.found.isOpen {
		return open, nil
	}
	s.ended = append(s.ended, m.Results...)
	asks := m.asks()
	s.between = s.between || s.asking && !asks
	s.asking = asks
	return undecided, nil
}

// usesTurns reports whether the session's own events begin with a turn: whether
// a turn_started comes before the first message of an assistant.
func usesTurns(ctx context.Context, log *eventlog.Log, session string) (bool, error) {
	read := 0
	own := log.Read(ctx, session, eventlog.All().Own().Bare())
	for e, err := range filled(ctx, log, session, own, event.MessageAdded) {
		if err != nil {
			return false, err
		}
		if e.Type.Name() == event.TurnStarted {
			return true, nil
		}
		m, _, err := speechOf(&e)
		if read++; err != nil || m.Role == event.Assistant || read == enoughEvents {
			return false, err
		}
	}
	return false, nil
}
