package anthropic

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/render"
)

// ErrAnswer reports that a value is not an answer of the API.
var ErrAnswer = render.ErrAnswer

// ToolName returns the name of a tool in a request. Messages renders calls with it,
// because the API accepts letters, digits, "_" and "-" only.
func ToolName(name string) string { return render.Name(name, maxName) }

// Answer parses a response of the Messages API, without streaming. Its parts are the
// content blocks, in order; the results of the provider's own tools and blocks of
// unknown types are opaque parts. Messages renders all of them back.
//
// The provider is Provider. Other members of the response go to the Extra of the
// message. An error matches ErrAnswer.
func Answer(response jsontext.Value) (m event.Message, err error) {
	o, err := parts.Open(response)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	content := o.Take("content")
	if content.Kind() != '[' {
		return m, fmt.Errorf("%w: content is not an array", ErrAnswer)
	}
	m = event.Message{Role: event.Assistant, Provider: Provider, ResponseID: o.Maybe("id"), Model: o.Maybe("model")}
	m.StopReason = o.Maybe("stop_reason")
	if m.Parts, err = (&parts.Reader{}).Content(content); err != nil {
		return m, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if u, ok := parts.Usage(o.Peek("usage")); ok {
		o.Take("usage")
		m.Usage = u
	}
	o.Take("type")
	o.Take("role")
	m.Extra = o.RestWithoutNulls()
	return m, nil
}
