package eventlog

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// StepStart is the payload of step_started: a model is about to be called.
type StepStart struct {
	// Step numbers the model calls of a turn.
	Step        int         `json:"step"`
	TurnID      ulid.ULID   `json:"turn_id,omitzero"`
	Agent       string      `json:"agent,omitzero"`
	Provider    string      `json:"provider,omitzero"`
	Model       string      `json:"model,omitzero"`
	PromptCache PromptCache `json:"prompt_cache,omitzero"`
	// RequestDigest identifies the request, which is not stored.
	RequestDigest Digest `json:"request_digest,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// PromptCache identifies what a provider may have cached of a request.
type PromptCache struct {
	PrefixHash     string `json:"prefix_hash,omitzero"`
	ToolSchemaHash string `json:"tool_schema_hash,omitzero"`
}

// NewStepStarted makes a step_started.
func NewStepStarted(s StepStart) (Event, error) { return NewEvent(s) }

// StepStart reads a step_started; ok and err are as for Message.
func (e *Event) StepStart() (s StepStart, ok bool, err error) {
	return decode[StepStart](e, StepStarted)
}

// EventType is step_started.
func (s StepStart) EventType() Type { return StepStarted }
func (s StepStart) check() error {
	return firstError(requireMin("step", s.Step, 0), requireDigest("request_digest", s.RequestDigest), requireExtra(s.Extra))
}
func (s StepStart) needs() []Digest { return nil }

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

// NewStepCompleted makes a step_completed.
func NewStepCompleted(s StepCompletion) (Event, error) { return NewEvent(s) }

// StepCompletion reads a step_completed; ok and err are as for Message.
func (e *Event) StepCompletion() (s StepCompletion, ok bool, err error) {
	return decode[StepCompletion](e, StepCompleted)
}

// EventType is step_completed.
func (s StepCompletion) EventType() Type { return StepCompleted }
func (s StepCompletion) check() error {
	return firstError(requireMin("step", s.Step, 0), s.Usage.check(), requireExtra(s.Extra))
}
func (s StepCompletion) needs() []Digest { return nil }
