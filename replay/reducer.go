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

// Reducer folds an event into a state. It must not modify the event, and may keep a
// copy of it. An error ends the replay.
type Reducer[S any] func(s *S, e *event.Event) error

// Replay folds a lineage, an active path or a part of one into state, oldest event
// first. Each event goes to each reducer in order. The errors are the errors of
// Check, and of the reducers. With an error, Replay also returns the state so far.
func Replay[S any](events iter.Seq2[event.Event, error], state S, reducers ...Reducer[S]) (S, error) {
	return Replayer[S]{Reducers: reducers}.Replay(events, state)
}

// Replayer folds a selection of a sequence of events. The zero value with Reducers
// folds all events. It may be used concurrently.
type Replayer[S any] struct {
	// Options describe the sequence.
	Options
	// UntilSeq is the seq of the last event to replay, with Backward the oldest one;
	// 0 is no limit.
	UntilSeq int64
	// UntilEvent is the id of the last event to replay; zero is no limit.
	UntilEvent ulid.ULID
	// ActiveOnly leaves out the events that are not on the active path of the newest
	// replayed event. The lineage must be whole.
	ActiveOnly bool
	// Reducers get each event, in order.
	Reducers []Reducer[S]
}

// Events yields the events that the reducers get. It ends with an error of the
// sequence, of Check, or with ErrEventNotFound if the sequence lacks the event of
// UntilSeq or UntilEvent.
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

// Replay folds a sequence into state. With an error it also returns the state so far.
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

// until ends a sequence after the last event to replay.
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
