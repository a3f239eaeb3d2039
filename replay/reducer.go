package replay

import (
	"errors"
	"fmt"
	"iter"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var errNoReducer = errors.New("replay: a reducer is nil")

// Reducer takes an event into a state. It must not modify the event, and may
// keep a copy of it. An error ends the replay.
type Reducer[S any] func(s *S, e *event.Event) error

// Replay folds a lineage, an active path or a part of one, oldest first, into
// state: each event goes to each reducer in order. With an error comes the state
// that the reducers had made until then. See Check for what else may be wrong.
func Replay[S any](events iter.Seq2[event.Event, error], state S, reducers ...Reducer[S]) (S, error) {
	return Replayer[S]{Reducers: reducers}.Replay(events, state)
}

// Replayer folds what it is told to of a sequence of events. The zero value
// with Reducers folds all of it. It may be used concurrently.
type Replayer[S any] struct {
	// Options say what the sequence is.
	Options
	// UntilSeq is the seq of the last event that is replayed, which is the
	// oldest one Backward; 0 is no bound.
	UntilSeq int64
	// UntilEvent is the id of the last event that is replayed; zero is no bound.
	UntilEvent ulid.ULID
	// ActiveOnly leaves out what is not on the active path as it was when the
	// newest of the events that are replayed was the newest of all. The lineage
	// must be whole.
	ActiveOnly bool
	// Reducers get each event in order.
	Reducers []Reducer[S]
}

// Events yields what the reducers see of a sequence. It ends with an error
// where the sequence does, where Check does, or with ErrEventNotFound where the
// sequence has no event to end at.
func (r Replayer[S]) Events(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	opts := r.Options
	if r.ActiveOnly {
		opts.Whole = true
	}
	events = r.until(Check(events, opts))
	if r.ActiveOnly {
		return pathOf(events, r.Backward)
	}
	return events
}

// Replay folds a sequence into state. With an error comes the state that the
// reducers had made until then.
func (r Replayer[S]) Replay(events iter.Seq2[event.Event, error], state S) (S, error) {
	for e, err := range r.Events(events) {
		if err != nil {
			return state, err
		}
		for _, reduce := range r.Reducers {
			if reduce == nil {
				return state, errNoReducer
			}
			if err := reduce(&state, &e); err != nil {
				return state, fmt.Errorf("replay event %d of session %q: %w", e.Seq, e.SessionID, err)
			}
		}
	}
	return state, nil
}

// until ends a sequence behind the event that is to be the last.
func (r Replayer[S]) until(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	if r.UntilSeq == 0 && r.UntilEvent.IsZero() {
		return events
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			last := err != nil || e.Seq == r.UntilSeq || !r.UntilEvent.IsZero() && e.ID == r.UntilEvent
			if !yield(e, err) || last {
				return
			}
		}
		yield(event.Event{}, fmt.Errorf("replay until %s: %w", r.bound(), eventlog.ErrEventNotFound))
	}
}

func (r Replayer[S]) bound() string {
	if r.UntilEvent.IsZero() {
		return fmt.Sprintf("seq %d", r.UntilSeq)
	}
	return fmt.Sprintf("event %v", r.UntilEvent)
}
