package flow

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments, an object; nil means no arguments.
	Parameters jsontext.Value
	// Class says what happens to a call that was interrupted; idempotent if empty.
	Class event.EffectClass
	// Retry says how often a failed call is tried. The zero Retry is once.
	Retry Retry
	// Timeout bounds an attempt; 0 is no bound.
	Timeout time.Duration
	// Review decides whether a person must approve the call; nil never asks.
	Review func(ctx context.Context, call event.Part) (*Review, error)
	// Run runs the call and returns the content of its result. An error is told to the
	// model.
	Run func(ctx context.Context, call event.Part) ([]event.Part, error)
}
