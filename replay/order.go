package replay

import (
	"errors"
	"fmt"
)

// What may be wrong with a sequence. Each comes in an *OrderError.
var (
	// ErrMixedSessions: the event belongs to another lineage.
	ErrMixedSessions = errors.New("sessions are mixed")
	// ErrGap: an event that was due is not there.
	ErrGap = errors.New("events are missing")
	// ErrOrder: the event comes again, or too late.
	ErrOrder = errors.New("events are out of order")
	// ErrCycle: the event goes on from itself or from a later one.
	ErrCycle = errors.New("events go round in a cycle")
	// ErrForkPoint: the event a fork goes on from is not the one it forked.
	ErrForkPoint = errors.New("not the event that was forked")
)

// OrderError says which event does not fit into its sequence. It matches the
// sentinel of the rule.
type OrderError struct {
	// Session and Seq are those of the event.
	Session string
	Seq     int64
	// Rule is ErrMixedSessions, ErrGap, ErrOrder, ErrCycle or ErrForkPoint.
	Rule error
	// Detail says what was found.
	Detail string
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("event %d of session %q: %v: %s", e.Seq, e.Session, e.Rule, e.Detail)
}

// Unwrap gives the rule.
func (e *OrderError) Unwrap() error { return e.Rule }
