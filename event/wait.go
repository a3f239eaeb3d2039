package event

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// WaitOutcome says how a wait ended. Readers take an unknown word for canceled.
type WaitOutcome string

// How a wait ends.
const WaitWasResolved WaitOutcome = "resolved"
const WaitExpired WaitOutcome = "expired"
const WaitCanceled WaitOutcome = "canceled"

var waitOutcomes = []WaitOutcome{"", WaitWasResolved, WaitExpired, WaitCanceled}

// Known returns o, WaitWasResolved if o is empty, or WaitCanceled if this program does not
// know the outcome.
func (o WaitOutcome) Known() WaitOutcome {
	return cmp.Or(knownWord(o, WaitCanceled, waitOutcomes), WaitWasResolved)
}

// Wait is the payload of wait_started and wait_resolved: the session waits for
// something outside.
type Wait struct {
	// Resolved decides the event type: false is wait_started, true is wait_resolved. It is
	// not part of the data.
	Resolved bool `json:"-"`

	WaitID string `json:"wait_id"`
	// ExternalID is the name that the outside knows the wait by.
	ExternalID string `json:"external_id,omitzero"`
	// TurnID, CursorID and Ordinal name the turn that waits, its cursor, and the place in
	// the turn; wait_started only.
	TurnID   ulid.ULID `json:"turn_id,omitzero"`
	CursorID string    `json:"cursor_id,omitzero"`
	Ordinal  string    `json:"ordinal,omitzero"`
	Reason   string    `json:"reason,omitzero"`
	// Until is when the wait ends by itself; wait_started only, zero is never.
	Until time.Time `json:"until,omitzero"`
	// Outcome says how the wait ended; wait_resolved only, empty is resolved. By is the
	// person or program that ended it.
	Outcome WaitOutcome `json:"outcome,omitzero"`
	By      string      `json:"by,omitzero"`
	// Value is any JSON value, verbatim; wait_resolved only.
	Value jsontext.Value `json:"value,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

func (w *Wait) setType(t Type) {
	w.Resolved = t.Name() == WaitResolved
}

// EventType is wait_started or, of a wait that ended, wait_resolved.
func (w Wait) EventType() Type {
	if w.Resolved {
		return WaitResolved
	}
	return WaitStarted
}

// Validate applies the rules of Wait that need no other event.
func (w Wait) Validate() error {
	if w.Resolved && !w.Until.IsZero() {
		return fmt.Errorf("%w: until belongs to wait_started", ErrInvalidPayload)
	}
	if !w.Resolved && (w.Value != nil || w.Outcome != "" || w.By != "") {
		return fmt.Errorf("%w: value, outcome and by belong to wait_resolved", ErrInvalidPayload)
	}
	if w.Resolved && (!w.TurnID.IsZero() || w.CursorID != "" || w.Ordinal != "") {
		return fmt.Errorf("%w: turn_id, cursor_id and ordinal belong to wait_started", ErrInvalidPayload)
	}
	return firstError(
		require("wait_id", w.WaitID),
		requireOrdinal(w.Ordinal),
		requireExtra(w.Extra),
		requireWord("outcome", w.Outcome, waitOutcomes...),
	)
}
