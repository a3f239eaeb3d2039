package event

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// RunClaim is the payload of run_claimed: a runner takes the session over.
type RunClaim struct {
	// Epoch is the epoch of the previous claim plus one; the first is 1.
	Epoch  int64  `json:"epoch"`
	Runner string `json:"runner,omitzero"`
	// Lease names a lease outside the log that shows that the holder is alive.
	Lease string `json:"lease,omitzero"`
	// Store is the id of the store in which the runner took the session over.
	Store string `json:"store,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is run_claimed.
func (r RunClaim) EventType() Type { return RunClaimed }

// Validate applies the rules of RunClaim that need no other event.
func (r RunClaim) Validate() error {
	return firstError(requireMin("epoch", r.Epoch, 1), requireExtra(r.Extra))
}

// RunRelease is the payload of run_released.
type RunRelease struct {
	// Epoch is the epoch of the claim that ends.
	Epoch  int64  `json:"epoch"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is run_released.
func (r RunRelease) EventType() Type { return RunReleased }

// Validate applies the rules of RunRelease that need no other event.
func (r RunRelease) Validate() error {
	return firstError(requireMin("epoch", r.Epoch, 1), requireExtra(r.Extra))
}

// Abort is the payload of abort_requested.
type Abort struct {
	// TurnID is the turn to abort; zero is whichever runs.
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	// By is the person or program that asks.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is abort_requested.
func (a Abort) EventType() Type { return AbortRequested }

// Validate applies the rules of Abort that need no other event.
func (a Abort) Validate() error { return requireExtra(a.Extra) }
