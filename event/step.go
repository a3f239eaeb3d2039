package event

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// StepStart is the payload of step_started: a model is about to be called.
type StepStart struct {
	// Step numbers the model calls of a turn.
	Step     int       `json:"step"`
	TurnID   ulid.ULID `json:"turn_id,omitzero"`
	Agent    string    `json:"agent,omitzero"`
	Provider string    `json:"provider,omitzero"`
	Model    string    `json:"model,omitzero"`
	// PromptCache identifies the part of the request that a provider may have cached.
	PromptCache struct {
		PrefixHash     string `json:"prefix_hash,omitzero"`
		ToolSchemaHash string `json:"tool_schema_hash,omitzero"`
	} `json:"prompt_cache,omitzero"`
	// RequestDigest identifies the request, which is not stored.
	RequestDigest Digest `json:"request_digest,omitzero"`
	// Seen is the newest event that the request has; 0 if it is not known.
	Seen int64 `json:"seen,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is step_started.
func (s StepStart) EventType() Type { return StepStarted }

// Validate applies the rules of StepStart that need no other event.
func (s StepStart) Validate() error {
	return firstError(requireMin("step", s.Step, 0), requireDigest("request_digest", s.RequestDigest), requireExtra(s.Extra))
}

// StepCompletion is the payload of step_completed: a model was called.
type StepCompletion struct {
	Step       int       `json:"step"`
	TurnID     ulid.ULID `json:"turn_id,omitzero"`
	Agent      string    `json:"agent,omitzero"`
	Provider   string    `json:"provider,omitzero"`
	Model      string    `json:"model,omitzero"`
	ResponseID string    `json:"response_id,omitzero"`
	StopReason string    `json:"stop_reason,omitzero"`
	Usage      Usage     `json:"usage,omitzero"`
	Error      string    `json:"error,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is step_completed.
func (s StepCompletion) EventType() Type { return StepCompleted }

// Validate applies the rules of StepCompletion that need no other event.
func (s StepCompletion) Validate() error {
	return firstError(requireMin("step", s.Step, 0), s.Usage.check(), requireExtra(s.Extra))
}
