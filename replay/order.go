package replay

import (
	"errors"
	"fmt"
)

// Reasons why an event does not fit into its sequence. An *OrderError matches one of
// them.
var (
	// ErrMixedSessions means that the event belongs to another lineage.
	ErrMixedSessions = errors.New("sessions are mixed")
	// ErrGap means that events before this one are missing.
	ErrGap = errors.New("events are missing")
	// ErrOrder means that the event is a repeat, or comes too late.
	ErrOrder = errors.New("events are out of order")
	// ErrCycle means that the event follows itself or a later event.
	ErrCycle = errors.New("events form a cycle")
	// ErrForkPoint means that the event before a fork is not the event it was forked
	// at.
	ErrForkPoint = errors.New("fork point does not match")
)

// OrderError is an event that does not fit into its sequence.
type OrderError struct {
	// Session and Seq identify the event.
	Session string
	Seq     int64
	// Rule is ErrMixedSessions, ErrGap, ErrOrder, ErrCycle or ErrForkPoint.
	Rule error
	// Detail says how the event differs from the expected one.
	Detail string
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("event %d of session %q: %v: %s", e.Seq, e.Session, e.Rule, e.Detail)
}

// Unwrap returns Rule.
func (e *OrderError) Unwrap() error { return e.Rule }
