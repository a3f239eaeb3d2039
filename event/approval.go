package event

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// ApprovalRequest is the payload of approval_requested: an effect waits for a
// person's consent.
type ApprovalRequest struct {
	InterruptID string `json:"interrupt_id"`
	EffectID    string `json:"effect_id,omitzero"`
	CallID      string `json:"call_id,omitzero"`
	Name        string `json:"name,omitzero"`
	// TurnID, CursorID and Ordinal name the turn that waits, its cursor, and the place in
	// the turn.
	TurnID   ulid.ULID `json:"turn_id,omitzero"`
	CursorID string    `json:"cursor_id,omitzero"`
	Ordinal  string    `json:"ordinal,omitzero"`
	// Nonce is 32 random hex digits.
	Nonce string `json:"nonce,omitzero"`
	// ArgumentsDigest is ArgumentsDigest(Nonce, arguments). It binds the answer to these
	// arguments.
	ArgumentsDigest Digest `json:"arguments_digest,omitzero"`
	Boundary        string `json:"boundary,omitzero"`
	Operation       string `json:"operation,omitzero"`
	Prompt          string `json:"prompt,omitzero"`
	// ExpiresAt is the last instant at which an answer is valid; zero is never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Lapse says what happens when ExpiresAt passes without an answer; empty is wait.
	Lapse Lapse `json:"lapse,omitzero"`
	// Arguments are what the effect asks to run with, any JSON value, verbatim.
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Detail is any JSON value, verbatim.
	Detail jsontext.Value `json:"detail,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is approval_requested.
func (a ApprovalRequest) EventType() Type { return ApprovalRequested }

// Validate applies the rules of ApprovalRequest that need no other event.
func (a ApprovalRequest) Validate() error {
	return firstError(
		require("interrupt_id", a.InterruptID),
		requireNonce(a.Nonce, a.ArgumentsDigest),
		requireOrdinal(a.Ordinal),
		requireExtra(a.Extra),
		requireWord("lapse", a.Lapse, lapses...),
	)
}

// Lapse says what happens when an approval request expires. Readers take an unknown word
// for wait.
type Lapse string

// What happens when a request expires.
const LapseWait Lapse = "wait"
const LapseDeny Lapse = "deny"
const LapseFail Lapse = "fail"

var lapses = []Lapse{"", LapseWait, LapseDeny, LapseFail}

// Known returns l, or LapseWait if l is empty or this program does not know it.
func (l Lapse) Known() Lapse { return cmp.Or(knownWord(l, LapseWait, lapses), LapseWait) }

// Decision is the answer to an approval request. Readers take an unknown word for denied.
type Decision string

// The decisions.
const Approved Decision = "approved"
const Denied Decision = "denied"

// Answered: the effect does not run, and Answer is its result.
const Answered Decision = "answered"

var decisions = []Decision{Approved, Denied, Answered}

// Known returns d, or Denied if this program does not know the decision.
func (d Decision) Known() Decision { return knownWord(d, Denied, decisions) }

// ApprovalResolution is the payload of approval_resolved.
type ApprovalResolution struct {
	InterruptID string `json:"interrupt_id"`
	EffectID    string `json:"effect_id,omitzero"`
	// ArgumentsDigest is the digest of the request.
	ArgumentsDigest Digest   `json:"arguments_digest,omitzero"`
	Decision        Decision `json:"decision"`
	// By is the person or program that decided.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Arguments are what the effect is to run with, if it is approved with other
	// arguments.
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Answer is any JSON value, verbatim.
	Answer jsontext.Value `json:"answer,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is approval_resolved.
func (a ApprovalResolution) EventType() Type { return ApprovalResolved }

// Validate applies the rules of ApprovalResolution that need no other event.
func (a ApprovalResolution) Validate() error {
	return firstError(
		require("interrupt_id", a.InterruptID),
		requireDigest("arguments_digest", a.ArgumentsDigest),
		requireExtra(a.Extra),
		requireWord("decision", a.Decision, decisions...),
	)
}

// ApprovalCancelation is the payload of approval_canceled: the request needs no
// answer any more.
type ApprovalCancelation struct {
	InterruptID string `json:"interrupt_id"`
	Reason      string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is approval_canceled.
func (a ApprovalCancelation) EventType() Type { return ApprovalCanceled }

// Validate applies the rules of ApprovalCancelation that need no other event.
func (a ApprovalCancelation) Validate() error {
	return firstError(require("interrupt_id", a.InterruptID), requireExtra(a.Extra))
}
