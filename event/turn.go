package event

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// TurnStart is the payload of turn_started.
type TurnStart struct {
	Agent string `json:"agent,omitzero"`
	// Index counts the session's turns, from 0.
	Index int `json:"index"`
	// SnapshotID is reserved for the snapshot at the turn's end.
	SnapshotID string `json:"snapshot_id,omitzero"`
	// InputID tells a repeated input from a new one.
	InputID string `json:"input_id,omitzero"`
	// Version names the code of the agent that started the turn.
	Version string `json:"version,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is turn_started.
func (t TurnStart) EventType() Type { return TurnStarted }

// Validate applies the rules of TurnStart that need no other event.
func (t TurnStart) Validate() error {
	return firstError(requireMin("index", t.Index, 0), requireExtra(t.Extra))
}

// TurnStatus says how a turn ended. Readers take an unknown word for interrupted.
type TurnStatus string

// How a turn ends.
const TurnStatusCompleted TurnStatus = "completed"
const TurnStatusFailed TurnStatus = "failed"
const TurnStatusAborted TurnStatus = "aborted"
const TurnStatusInterrupted TurnStatus = "interrupted"

var turnStatuses = []TurnStatus{TurnStatusCompleted, TurnStatusFailed, TurnStatusAborted, TurnStatusInterrupted}

// Known returns s, or TurnStatusInterrupted if this program does not know the status.
func (s TurnStatus) Known() TurnStatus { return knownWord(s, TurnStatusInterrupted, turnStatuses) }

// TurnCompletion is the payload of turn_completed.
type TurnCompletion struct {
	// TurnID is the id of the turn_started; zero where an import has none.
	TurnID     ulid.ULID  `json:"turn_id,omitzero"`
	Status     TurnStatus `json:"status"`
	StopReason string     `json:"stop_reason,omitzero"`
	// Steps is how many model calls the turn made.
	Steps int   `json:"steps,omitzero"`
	Usage Usage `json:"usage,omitzero"`
	// Code names the kind of the error for programs.
	Code  string `json:"code,omitzero"`
	Error string `json:"error,omitzero"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is turn_completed.
func (t TurnCompletion) EventType() Type { return TurnCompleted }

// Validate applies the rules of TurnCompletion that need no other event.
func (t TurnCompletion) Validate() error {
	return firstError(
		requireMin("steps", t.Steps, 0),
		requireMin("duration_ms", t.DurationMS, 0),
		t.Usage.check(),
		requireExtra(t.Extra),
		requireWord("status", t.Status, turnStatuses...),
	)
}

// Cursor is the point at which a hibernated turn continues.
type Cursor struct {
	ID string `json:"id"`
	// Kind is start, after_prompt, before_effect, review or wait.
	Kind        string `json:"kind"`
	EffectID    string `json:"effect_id,omitzero"`
	EffectKind  string `json:"effect_kind,omitzero"`
	InterruptID string `json:"interrupt_id,omitzero"`
	// WaitIDs are several waits: the turn continues when the first of them ends.
	WaitIDs   []string `json:"wait_ids,omitzero"`
	Boundary  string   `json:"boundary,omitzero"`
	Operation string   `json:"operation,omitzero"`
	// Ordinal is the place of the effect in the turn, as in EffectIntent.
	Ordinal string `json:"ordinal,omitzero"`
	// Loop is how many times the turn has called the model.
	Loop int `json:"loop,omitzero"`
}

// TurnHibernation is the payload of turn_hibernated.
type TurnHibernation struct {
	TurnID     ulid.ULID `json:"turn_id"`
	Cursor     Cursor    `json:"cursor"`
	SnapshotID string    `json:"snapshot_id,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is turn_hibernated.
func (t TurnHibernation) EventType() Type { return TurnHibernated }

// Validate applies the rules of TurnHibernation that need no other event.
func (t TurnHibernation) Validate() error {
	return firstError(
		requireID("turn_id", t.TurnID),
		require("cursor.id", t.Cursor.ID),
		require("cursor.kind", t.Cursor.Kind),
		requireOrdinal(t.Cursor.Ordinal),
		requireMin("cursor.loop", t.Cursor.Loop, 0),
		requireExtra(t.Extra),
	)
}

// TurnResumption is the payload of turn_resumed: it consumes a cursor.
type TurnResumption struct {
	TurnID     ulid.ULID `json:"turn_id"`
	CursorID   string    `json:"cursor_id"`
	SnapshotID string    `json:"snapshot_id,omitzero"`
	// Answer is any JSON value, verbatim.
	Answer jsontext.Value `json:"answer,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is turn_resumed.
func (t TurnResumption) EventType() Type { return TurnResumed }

// Validate applies the rules of TurnResumption that need no other event.
func (t TurnResumption) Validate() error {
	return firstError(requireID("turn_id", t.TurnID), require("cursor_id", t.CursorID), requireExtra(t.Extra))
}
