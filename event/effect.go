package event

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/line"
)

// EffectClass is the remedy for an effect that has an intent and no result. Readers take
// an unknown word for unsafe_once.
type EffectClass string

// The classes of effects.
// EffectPure and EffectIdempotent effects run again.
const EffectPure EffectClass = "pure"
const EffectIdempotent EffectClass = "idempotent"

// EffectDedupe effects run again: the other side knows the key.
const EffectDedupe EffectClass = "dedupe"

// EffectReconcile: check outside the log whether the effect has happened.
const EffectReconcile EffectClass = "reconcile"

// EffectUnsafeOnce effects never run again.
const EffectUnsafeOnce EffectClass = "unsafe_once"

var effectClasses = []EffectClass{EffectPure, EffectIdempotent, EffectDedupe, EffectReconcile, EffectUnsafeOnce}

// Known returns c, or EffectUnsafeOnce if this program does not know the class.
func (c EffectClass) Known() EffectClass { return knownWord(c, EffectUnsafeOnce, effectClasses) }

// EffectIntent is the payload of effect_intended. It is durable before the
// effect runs.
type EffectIntent struct {
	// Key identifies the effect across attempts.
	Key    string    `json:"key"`
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	// Ordinal is the place in the turn: numbers joined by dots, "0.2".
	Ordinal string      `json:"ordinal,omitzero"`
	Kind    string      `json:"kind,omitzero"`
	Name    string      `json:"name,omitzero"`
	Class   EffectClass `json:"class"`
	Attempt int         `json:"attempt,omitzero"`
	// InterruptID is the approval that allows this attempt.
	InterruptID string `json:"interrupt_id,omitzero"`
	// Nonce is 32 random hex digits. Without them nobody can guess
	// the arguments from ArgumentsDigest.
	Nonce string `json:"nonce,omitzero"`
	// ArgumentsDigest is ArgumentsDigest(Nonce, arguments). It must be the same when the
	// turn is run again: it is of the arguments that the turn asked with.
	ArgumentsDigest Digest `json:"arguments_digest,omitzero"`
	// Arguments are what the effect ran with, any JSON value, verbatim.
	Arguments jsontext.Value `json:"arguments,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is effect_intended.
func (x EffectIntent) EventType() Type { return EffectIntended }

// Validate applies the rules of EffectIntent that need no other event.
func (x EffectIntent) Validate() error {
	return firstError(
		require("key", x.Key),
		requireOrdinal(x.Ordinal),
		requireMin("attempt", x.Attempt, 0),
		requireNonce(x.Nonce, x.ArgumentsDigest),
		requireExtra(x.Extra),
		requireWord("class", x.Class, effectClasses...),
	)
}

// EffectCompletion is the payload of effect_completed: the effect's result, or
// the error that it ended with.
type EffectCompletion struct {
	Key     string    `json:"key"`
	TurnID  ulid.ULID `json:"turn_id,omitzero"`
	Ordinal string    `json:"ordinal,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	// RetryAt, if set, says that only this attempt ended: the effect is tried again then.
	// The first completion without it is the effect's result. A completion with it takes a
	// result of the same attempt back.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// EventIDs are the events of the same append, before this one, that are the outcome.
	EventIDs []ulid.ULID `json:"event_ids,omitzero"`
	// Result is any JSON value, verbatim; nil when there is an error.
	Result jsontext.Value `json:"result,omitzero"`
	Error  *EffectError   `json:"error,omitzero"`
	Usage  Usage          `json:"usage,omitzero"`
	// By and Reason say who recorded the result, if it was not the runner, and why.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EffectError is an error that is recorded and replayed as a result.
type EffectError struct {
	Code    string `json:"code,omitzero"`
	Message string `json:"message"`
}

// EventType is effect_completed.
func (x EffectCompletion) EventType() Type { return EffectCompleted }

// Validate applies the rules of EffectCompletion that need no other event.
func (x EffectCompletion) Validate() error {
	if x.Result != nil && x.Error != nil {
		return fmt.Errorf("%w: result and error exclude each other", ErrInvalidPayload)
	}
	return firstError(
		require("key", x.Key),
		requireOrdinal(x.Ordinal),
		requireMin("attempt", x.Attempt, 0),
		x.Usage.check(),
		requireExtra(x.Extra),
	)
}

// requireOrdinal accepts "" and numbers joined by dots.
func requireOrdinal(ordinal string) error {
	if ordinal == "" {
		return nil
	}
	for number := range strings.SplitSeq(ordinal, ".") {
		if number == "" || !line.IsDigits(number) {
			return fmt.Errorf("%w: ordinal is %q, not numbers joined by dots", ErrInvalidPayload, line.Clip(ordinal))
		}
	}
	return nil
}
