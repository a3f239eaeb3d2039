package event

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

// EventType is tool_started.
func (t ToolStart) EventType() Type { return ToolStarted }

// Validate applies the rules of ToolStart that need no other event.
func (t ToolStart) Validate() error {
	return firstError(requireExecution(t.CallID, t.IdempotencyKey), require("name", t.Name), requireExtra(t.Extra))
}

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

// EventType is tool_completed.
func (t ToolCompletion) EventType() Type { return ToolCompleted }

// Validate applies the rules of ToolCompletion that need no other event.
func (t ToolCompletion) Validate() error {
	return firstError(
		requireExecution(t.CallID, t.IdempotencyKey),
		require("name", t.Name),
		checkParts(t.Content),
		requireMin("duration_ms", t.DurationMS, 0),
		requireExtra(t.Extra),
	)
}

// Blobs lists the blobs of ToolCompletion.
func (t ToolCompletion) Blobs() []Digest { return partsNeed(t.Content) }

func requireExecution(callID, key string) error {
	if callID == "" && key == "" {
		return fmt.Errorf("%w: call_id and idempotency_key are missing", ErrInvalidPayload)
	}
	return nil
}
