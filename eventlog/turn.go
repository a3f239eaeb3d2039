package eventlog

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
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewTurnStarted makes a turn_started; its event id is the turn's id.
func NewTurnStarted(t TurnStart) (Event, error) { return NewEvent(t) }

// TurnStart reads a turn_started; ok and err are as for Message.
func (e *Event) TurnStart() (t TurnStart, ok bool, err error) {
	return decode[TurnStart](e, TurnStarted)
}

// EventType is turn_started.
func (t TurnStart) EventType() Type { return TurnStarted }
func (t TurnStart) check() error {
	return firstError(requireMin("index", t.Index, 0), requireExtra(t.Extra))
}
func (t TurnStart) needs() []Digest { return nil }

// TurnStatus says how a turn ended.
type TurnStatus string

// How a turn ends.
const (
	TurnStatusCompleted   TurnStatus = "completed"
	TurnStatusFailed      TurnStatus = "failed"
	TurnStatusAborted     TurnStatus = "aborted"
	TurnStatusInterrupted TurnStatus = "interrupted"
)

// TurnCompletion is the payload of turn_completed.
type TurnCompletion struct {
	// TurnID is the id of the turn_started; zero where an import has none.
	TurnID     ulid.ULID  `json:"turn_id,omitzero"`
	Status     TurnStatus `json:"status"`
	StopReason string     `json:"stop_reason,omitzero"`
	// Steps is how many model calls the turn made.
	Steps int    `json:"steps,omitzero"`
	Usage Usage  `json:"usage,omitzero"`
	Error string `json:"error,omitzero"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewTurnCompleted makes a turn_completed. The status is required.
func NewTurnCompleted(t TurnCompletion) (Event, error) { return NewEvent(t) }

// TurnCompletion reads a turn_completed; ok and err are as for Message.
func (e *Event) TurnCompletion() (t TurnCompletion, ok bool, err error) {
	return decode[TurnCompletion](e, TurnCompleted)
}

// EventType is turn_completed.
func (t TurnCompletion) EventType() Type { return TurnCompleted }

func (t TurnCompletion) check() error {
	return firstError(
		requireOneOf("status", t.Status, TurnStatusCompleted, TurnStatusFailed, TurnStatusAborted, TurnStatusInterrupted),
		requireMin("steps", t.Steps, 0),
		requireMin("duration_ms", t.DurationMS, 0),
		t.Usage.check(),
		requireExtra(t.Extra),
	)
}

func (t TurnCompletion) needs() []Digest { return nil }

// Cursor is where a hibernated turn goes on.
type Cursor struct {
	ID string `json:"id"`
	// Kind is start, after_prompt, before_effect, review or wait.
	Kind        string `json:"kind"`
	EffectID    string `json:"effect_id,omitzero"`
	EffectKind  string `json:"effect_kind,omitzero"`
	InterruptID string `json:"interrupt_id,omitzero"`
	Boundary    string `json:"boundary,omitzero"`
	Operation   string `json:"operation,omitzero"`
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

// NewTurnHibernated makes a turn_hibernated. The turn and the cursor's id and
// kind are required.
func NewTurnHibernated(t TurnHibernation) (Event, error) { return NewEvent(t) }

// TurnHibernation reads a turn_hibernated; ok and err are as for Message.
func (e *Event) TurnHibernation() (t TurnHibernation, ok bool, err error) {
	return decode[TurnHibernation](e, TurnHibernated)
}

// EventType is turn_hibernated.
func (t TurnHibernation) EventType() Type { return TurnHibernated }

func (t TurnHibernation) check() error {
	return firstError(
		requireID("turn_id", t.TurnID),
		require("cursor.id", t.Cursor.ID),
		require("cursor.kind", t.Cursor.Kind),
		requireMin("cursor.loop", t.Cursor.Loop, 0),
		requireExtra(t.Extra),
	)
}

func (t TurnHibernation) needs() []Digest { return nil }

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

// NewTurnResumed makes a turn_resumed. The turn and the cursor are required.
func NewTurnResumed(t TurnResumption) (Event, error) { return NewEvent(t) }

// TurnResumption reads a turn_resumed; ok and err are as for Message.
func (e *Event) TurnResumption() (t TurnResumption, ok bool, err error) {
	return decode[TurnResumption](e, TurnResumed)
}

// EventType is turn_resumed.
func (t TurnResumption) EventType() Type { return TurnResumed }
func (t TurnResumption) check() error {
	return firstError(requireID("turn_id", t.TurnID), require("cursor_id", t.CursorID), requireExtra(t.Extra))
}
func (t TurnResumption) needs() []Digest { return nil }
