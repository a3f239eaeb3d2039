package flow

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Model is a language model. It is used concurrently.
type Model interface {
	// Generate asks the model and returns the whole answer. Meanwhile it may give pieces
	// of the answer to emit, which is never nil and must be called from one goroutine at a
	// time. An error may have the methods of ModelError: RetryAfter and Permanent.
	Generate(ctx context.Context, r *Request, emit func(eventlog.Delta)) (Response, error)
}

// Request is a question to a model.
type Request struct {
	// Model names the model; empty is the default of the Model.
	Model  string
	System string
	// Messages are the history. Turn.Model fills nil with the effective history of the
	// session. A Model must not modify them.
	Messages []projection.Entry
	// Tools are the tools that the model may call.
	Tools []ToolSpec
	// Parameters is an object of parameters with the names of the provider, for example
	// {"temperature":0}, or nil.
	Parameters jsontext.Value
	// Output is the JSON Schema of the answer, or nil.
	Output jsontext.Value
	// Blob returns the body of an image, a sound or a document in Messages. Turn.Model
	// sets it.
	Blob func(event.BlobRef) ([]byte, error)
}

// Response is the answer of a model.
type Response struct {
	// Message is the answer. Its provider, model, response id, stop reason and usage are
	// set as far as the provider told them.
	Message event.Message
	// Cost is the price of the call, if the provider told it.
	Cost event.Cost
}
