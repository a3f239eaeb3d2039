package eventlog

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ApprovalRequest is the payload of approval_requested: an effect waits for a
// person's consent.
type ApprovalRequest struct {
	InterruptID string `json:"interrupt_id"`
	EffectID    string `json:"effect_id,omitzero"`
	CallID      string `json:"call_id,omitzero"`
	Name        string `json:"name,omitzero"`
	// ArgumentsDigest binds the answer to these arguments.
	ArgumentsDigest Digest `json:"arguments_digest,omitzero"`
	Boundary        string `json:"boundary,omitzero"`
	Operation       string `json:"operation,omitzero"`
	Prompt          string `json:"prompt,omitzero"`
	// ExpiresAt is the last instant at which an answer is valid; zero is never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Detail is any JSON value, verbatim.
	Detail jsontext.Value `json:"detail,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewApprovalRequested makes an approval_requested. The interrupt is required.
func NewApprovalRequested(a ApprovalRequest) (Event, error) { return NewEvent(a) }

// ApprovalRequest reads an approval_requested; ok and err are as for Message.
func (e *Event) ApprovalRequest() (a ApprovalRequest, ok bool, err error) {
	return decode[ApprovalRequest](e, ApprovalRequested)
}

// EventType is approval_requested.
func (a ApprovalRequest) EventType() Type { return ApprovalRequested }

func (a ApprovalRequest) check() error {
	return firstError(
		require("interrupt_id", a.InterruptID),
		requireDigest("arguments_digest", a.ArgumentsDigest),
		requireExtra(a.Extra),
	)
}

func (a ApprovalRequest) needs() []Digest { return nil }

// Decision is the answer to an approval request.
type Decision string

// The decisions.
const (
	Approved Decision = "approved"
	Denied   Decision = "denied"
)

// ApprovalResolution is the payload of approval_resolved.
type ApprovalResolution struct {
	InterruptID     string   `json:"interrupt_id"`
	EffectID        string   `json:"effect_id,omitzero"`
	ArgumentsDigest Digest   `json:"arguments_digest,omitzero"`
	Decision        Decision `json:"decision"`
	// By is who decided.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Answer is any JSON value, verbatim.
	Answer jsontext.Value `json:"answer,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewApprovalResolved makes an approval_resolved. The interrupt and the
// decision are required.
func NewApprovalResolved(a ApprovalResolution) (Event, error) { return NewEvent(a) }

// ApprovalResolution reads an approval_resolved; ok and err are as for Message.
func (e *Event) ApprovalResolution() (a ApprovalResolution, ok bool, err error) {
	return decode[ApprovalResolution](e, ApprovalResolved)
}

// EventType is approval_resolved.
func (a ApprovalResolution) EventType() Type { return ApprovalResolved }

func (a ApprovalResolution) check() error {
	return firstError(
		require("interrupt_id", a.InterruptID),
		requireOneOf("decision", a.Decision, Approved, Denied),
		requireDigest("arguments_digest", a.ArgumentsDigest),
		requireExtra(a.Extra),
	)
}

func (a ApprovalResolution) needs() []Digest { return nil }

// ApprovalCancelation is the payload of approval_canceled: nobody need answer
// any more.
type ApprovalCancelation struct {
	InterruptID string `json:"interrupt_id"`
	Reason      string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewApprovalCanceled makes an approval_canceled. The interrupt is required.
func NewApprovalCanceled(a ApprovalCancelation) (Event, error) { return NewEvent(a) }

// ApprovalCancelation reads an approval_canceled; ok and err are as for Message.
func (e *Event) ApprovalCancelation() (a ApprovalCancelation, ok bool, err error) {
	return decode[ApprovalCancelation](e, ApprovalCanceled)
}

// EventType is approval_canceled.
func (a ApprovalCancelation) EventType() Type { return ApprovalCanceled }
func (a ApprovalCancelation) check() error {
	return firstError(require("interrupt_id", a.InterruptID), requireExtra(a.Extra))
}
func (a ApprovalCancelation) needs() []Digest { return nil }
