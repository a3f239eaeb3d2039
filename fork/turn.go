package fork

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// turn is where a turn of the active path stands.
type turn struct {
	start     int64 // its turn_started, or the user message it begins with
	completed int64 // its turn_completed; 0 if there is none
	next      int64 // the start of the turn behind it; 0 if there is none
}

// turnStart is the event before turn n begins; Point says what that means.
func turnStart(ctx context.Context, log *eventlog.Log, session string, n int64) (event.Event, error) {
	t, err := findTurn(ctx, log, session, n)
	if err != nil {
		return event.Event{}, err
	}
	return beforeAppend(ctx, log, session, t.start)
}

// turnEnd is the last event of turn n.
func turnEnd(ctx context.Context, log *eventlog.Log, session string, n int64) (event.Event, error) {
	t, err := findTurn(ctx, log, session, n)
	switch {
	case err != nil:
		return event.Event{}, err
	case t.completed > 0:
		e, err := log.Event(ctx, session, t.completed)
		if err != nil {
			return e, err
		}
		return appendEnd(ctx, log, session, e)
	case t.next > 0:
		return beforeAppend(ctx, log, session, t.next)
	default:
		return newest(ctx, log, session)
	}
}

// beforeAppend is the event of the path before the append that holds seq; the
// zero Event if the path begins with it.
func beforeAppend(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	first := seq + 1
	for e, err := range backward(ctx, log, session, seq) {
		if err != nil {
			return event.Event{}, err
		}
		if e.Seq != first-1 || e.Seq < seq && e.More() == 0 {
			return e, nil
		}
		first = e.Seq
	}
	return event.Event{}, nil
}

// findTurn looks for turn n from the head back. Only where there is no
// turn_started at all, or none with that index, it reads the whole path.
func findTurn(ctx context.Context, log *eventlog.Log, session string, n int64) (turn, error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return turn{}, err
	}
	var s turnSearch
	path := backward(ctx, log, session, head.Seq)
	for e, err := range filled(ctx, log, session, path, event.TurnStarted, event.MessageAdded) {
		if err != nil {
			return turn{}, err
		}
		found, err := s.older(&e, n)
		if found || err != nil {
			return s.at, err
		}
	}
	if s.started {
		return turn{}, ErrNoTurn
	}
	return s.exchanges.nth(n)
}

// turnSearch is fed the active path from its end back.
type turnSearch struct {
	at        turn // the turn that the events so far belong to
	started   bool // any turn_started was seen
	exchanges exchanges
}

// older takes in the event before those so far; found says that s.at is turn n.
func (s *turnSearch) older(e *event.Event, n int64) (found bool, err error) {
	switch e.Type.Name() {
	case event.TurnStarted:
		var t struct {
			Index int64 `json:"index"`
		}
		if err := decodeStructure(e, &t); err != nil {
			return false, err
		}
		s.started = true
		if s.at.start = e.Seq; t.Index == n {
			return true, nil
		}
		s.at = turn{next: e.Seq}
	case event.TurnCompleted:
		s.at.completed = e.Seq
	case event.MessageAdded:
		if !s.started {
			return false, s.exchanges.older(e)
		}
	}
	return false, nil
}

// exchanges collects where the user begins to speak.
type exchanges struct {
	starts []int64 // newest first
	asking bool    // the message behind is one of the user's that asks
}

// older takes in the message before those so far.
func (x *exchanges) older(e *event.Event) error {
	s, _, err := speechOf(e)
	if err != nil {
		return err
	}
	asks := s.asks()
	switch {
	case asks && x.asking:
		x.starts[len(x.starts)-1] = e.Seq
	case asks:
		x.starts = append(x.starts, e.Seq)
	}
	x.asking = asks
	return nil
}

// nth is exchange n of the path, from 0.
func (x *exchanges) nth(n int64) (t turn, err error) {
	i := int64(len(x.starts)) - 1 - n
	if n < 0 || i < 0 {
		return turn{}, ErrNoTurn
	}
	if i > 0 {
		t.next = x.starts[i-1]
	}
	t.start = x.starts[i]
	return t, nil
}
