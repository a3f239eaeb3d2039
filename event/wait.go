package event

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// WaitState says which event a Wait is the payload of.
type WaitState string

// The states of a Wait payload.
const (
	WaitStateStarted  WaitState = "started"
	WaitStateResolved WaitState = "resolved"
)

// Wait is the payload of wait_started and wait_resolved: the session waits for
// something outside.
type Wait struct {
	// State decides the event type. It is not part of the data.
	State WaitState `json:"-"`

	WaitID string `json:"wait_id"`
	// ExternalID is the name that the outside knows the wait by.
	ExternalID string `json:"external_id,omitzero"`
	Reason     string `json:"reason,omitzero"`
	// Until is when the wait ends by itself; wait_started only, zero is never.
	Until time.Time `json:"until,omitzero"`
	// Value is any JSON value, verbatim; wait_resolved only.
	Value jsontext.Value `json:"value,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

func (w *Wait) setType(t Type) {
	switch t.Name() {
	case WaitStarted:
		w.State = WaitStateStarted
	case WaitResolved:
		w.State = WaitStateResolved
	}
}

// EventType is wait_started or, in the state resolved, wait_resolved.
func (w Wait) EventType() Type {
	if w.State == WaitStateResolved {
		return WaitResolved
	}
	return WaitStarted
}

// Validate applies the rules of Wait that need no other event.
func (w Wait) Validate() error {
	if w.State == WaitStateResolved && !w.Until.IsZero() {
		return fmt.Errorf("%w: until belongs to wait_started", ErrInvalidPayload)
	}
	if w.State != WaitStateResolved && w.Value != nil {
		return fmt.Errorf("%w: value belongs to wait_resolved", ErrInvalidPayload)
	}
	return firstError(require("wait_id", w.WaitID), requireExtra(w.Extra))
}
