package fork

import (
	"context"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// turn is a turn of the active path, as seqs.
type turn struct {
	start     int64 // its turn_started, or the user message it begins with
	completed int64 // its turn_completed; 0 if it has none
	next      int64 // the start of the next turn; 0 for the newest
}

// beforeTurnStart is the event before turn n; see BeforeTurn.
func beforeTurnStart(ctx context.Context, log *eventlog.Log, session string, n int64) (event.Event, error) {
	t, err := findTurn(ctx, log, session, n)
	if err != nil {
		return event.Event{}, err
	}
	return beforeAppend(ctx, log, session, t.start)
}

// turnEnd is the last event of turn n; see AtTurn.
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

// beforeAppend is the event of the path before the append that holds seq; the zero
// Event if the path begins with that append.
func beforeAppend(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	first := seq + 1
	for e, err := range pathBack(ctx, log, session, seq) {
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

// findTurn finds turn n. It reads the active path backward, and all of it only if
// no turn_started has index n.
func findTurn(ctx context.Context, log *eventlog.Log, session string, n int64) (turn, error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return turn{}, err
	}
	var s turnSearch
	for e, err := range pathBack(ctx, log, session, head.Seq, event.TurnStarted, event.TurnCompleted, event.MessageAdded) {
		if err != nil {
			return turn{}, err
		}
		found, err := s.addOlder(&e, n)
		if found || err != nil {
			return s.turn, err
		}
	}
	if s.started {
		return turn{}, errNoTurn
	}
	return s.exchanges.turn(n)
}

// turnSearch reads the active path backward.
type turnSearch struct {
	turn      turn // the turn of the oldest event so far
	started   bool // the events so far have a turn_started
	exchanges exchanges
	ends      []event.Event // the turn_completed events so far, newest first
}

// addOlder adds the event before those so far. found means that s.turn is turn n.
func (s *turnSearch) addOlder(e *event.Event, n int64) (found bool, err error) {
	switch e.Type.Name() {
	case event.TurnStarted:
		t, err := event.DecodeKept[event.TurnStart](e)
		if err != nil {
			return false, err
		}
		s.started = true
		if s.turn.start = e.Seq; int64(t.Index) == n {
			return true, s.end(e.ID)
		}
		s.turn, s.ends = turn{next: e.Seq}, nil
	case event.TurnCompleted:
		s.ends = append(s.ends, *e)
	case event.MessageAdded:
		if !s.started {
			return false, s.exchanges.addOlder(e)
		}
	}
	return false, nil
}

// end sets the end of the turn: its first turn_completed that names it or no turn.
func (s *turnSearch) end(id ulid.ULID) error {
	for _, e := range s.ends {
		p, err := event.DecodeKept[event.TurnCompletion](&e)
		if err != nil {
			return err
		}
		if p.TurnID.IsZero() || p.TurnID == id {
			s.turn.completed = e.Seq
		}
	}
	return nil
}

// exchanges are the turns of a session without turn_started: each begins with the
// first of the user messages that follow each other.
type exchanges struct {
	starts []int64 // newest first
	asks   bool    // the oldest message so far is one of the user's that asks
}

// addOlder adds the message before those so far.
func (x *exchanges) addOlder(e *event.Event) error {
	o, _, err := event.OutlineOf(e)
	if err != nil || o.Context {
		return err
	}
	asks := o.Asks()
	switch {
	case asks && x.asks:
		x.starts[len(x.starts)-1] = e.Seq
	case asks:
		x.starts = append(x.starts, e.Seq)
	}
	x.asks = asks
	return nil
}

// turn is turn n of the path, from 0.
func (x *exchanges) turn(n int64) (t turn, err error) {
	i := int64(len(x.starts)) - 1 - n
	if n < 0 || i < 0 {
		return turn{}, errNoTurn
	}
	if i > 0 {
		t.next = x.starts[i-1]
	}
	t.start = x.starts[i]
	return t, nil
}
