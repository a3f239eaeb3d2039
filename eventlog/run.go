package eventlog

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// RunClaim is the payload of run_claimed: a runner takes the session over.
type RunClaim struct {
	// Epoch is one more than that of the claim before; from 1.
	Epoch  int64  `json:"epoch"`
	Runner string `json:"runner,omitzero"`
	// Lease names the lease outside the log that says who is alive.
	Lease string `json:"lease,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewRunClaimed makes a run_claimed. The epoch is required.
func NewRunClaimed(r RunClaim) (Event, error) { return NewEvent(r) }

// RunClaim reads a run_claimed; ok and err are as for Message.
func (e *Event) RunClaim() (r RunClaim, ok bool, err error) { return decode[RunClaim](e, RunClaimed) }

// EventType is run_claimed.
func (r RunClaim) EventType() Type { return RunClaimed }
func (r RunClaim) check() error {
	return firstError(requireMin("epoch", r.Epoch, 1), requireExtra(r.Extra))
}
func (r RunClaim) needs() []Digest { return nil }

// RunRelease is the payload of run_released.
type RunRelease struct {
	// Epoch is that of the claim that ends.
	Epoch  int64  `json:"epoch"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewRunReleased makes a run_released. The epoch is required.
func NewRunReleased(r RunRelease) (Event, error) { return NewEvent(r) }

// RunRelease reads a run_released; ok and err are as for Message.
func (e *Event) RunRelease() (r RunRelease, ok bool, err error) {
	return decode[RunRelease](e, RunReleased)
}

// EventType is run_released.
func (r RunRelease) EventType() Type { return RunReleased }
func (r RunRelease) check() error {
	return firstError(requireMin("epoch", r.Epoch, 1), requireExtra(r.Extra))
}
func (r RunRelease) needs() []Digest { return nil }

// Abort is the payload of abort_requested.
type Abort struct {
	// TurnID is the turn to abort; zero is whichever runs.
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	// By is who asks.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewAbortRequested makes an abort_requested.
func NewAbortRequested(a Abort) (Event, error) { return NewEvent(a) }

// Abort reads an abort_requested; ok and err are as for Message.
func (e *Event) Abort() (a Abort, ok bool, err error) { return decode[Abort](e, AbortRequested) }

// EventType is abort_requested.
func (a Abort) EventType() Type { return AbortRequested }
func (a Abort) check() error    { return requireExtra(a.Extra) }
func (a Abort) needs() []Digest { return nil }
