package eventlog

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolStart is the payload of tool_started: a tool is about to run.
type ToolStart struct {
	// CallID or IdempotencyKey says which execution it is; one is required.
	CallID string `json:"call_id,omitzero"`
	Name   string `json:"name"`
	// Arguments are any JSON value, verbatim.
	Arguments      jsontext.Value `json:"arguments,omitzero"`
	IdempotencyKey string         `json:"idempotency_key,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewToolStarted makes a tool_started. The name and a call id or idempotency
// key are required.
func NewToolStarted(t ToolStart) (Event, error) { return NewEvent(t) }

// ToolStart reads a tool_started; ok and err are as for Message.
func (e *Event) ToolStart() (t ToolStart, ok bool, err error) {
	return decode[ToolStart](e, ToolStarted)
}

// EventType is tool_started.
func (t ToolStart) EventType() Type { return ToolStarted }
func (t ToolStart) check() error {
	return firstError(requireExecution(t.CallID, t.IdempotencyKey), require("name", t.Name), requireExtra(t.Extra))
}
func (t ToolStart) needs() []Digest { return nil }

// ToolCompletion is the payload of tool_completed: a tool has run.
type ToolCompletion struct {
	// CallID or IdempotencyKey says which execution it is; one is required.
	CallID         string `json:"call_id,omitzero"`
	Name           string `json:"name"`
	IdempotencyKey string `json:"idempotency_key,omitzero"`
	Content        []Part `json:"content,omitzero"`
	IsError        bool   `json:"is_error,omitzero"`
	Error          string `json:"error,omitzero"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewToolCompleted makes a tool_completed. The name and a call id or
// idempotency key are required.
func NewToolCompleted(t ToolCompletion) (Event, error) { return NewEvent(t) }

// ToolCompletion reads a tool_completed; ok and err are as for Message.
func (e *Event) ToolCompletion() (t ToolCompletion, ok bool, err error) {
	return decode[ToolCompletion](e, ToolCompleted)
}

// EventType is tool_completed.
func (t ToolCompletion) EventType() Type { return ToolCompleted }

func (t ToolCompletion) check() error {
	return firstError(
		requireExecution(t.CallID, t.IdempotencyKey),
		require("name", t.Name),
		checkParts(t.Content),
		requireMin("duration_ms", t.DurationMS, 0),
		requireExtra(t.Extra),
	)
}

func (t ToolCompletion) needs() []Digest { return partsNeed(t.Content) }

func requireExecution(callID, key string) error {
	if callID == "" && key == "" {
		return fmt.Errorf("%w: call_id and idempotency_key are missing", ErrInvalidPayload)
	}
	return nil
}
