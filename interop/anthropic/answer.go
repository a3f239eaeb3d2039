package anthropic

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/render"
)

// Answer parses a response of the Messages API, without streaming. Its parts are the
// content blocks, in order; the results of the provider's own tools and blocks of
// unknown types are opaque parts. Messages renders all of them back.
//
// The provider is "anthropic". Other members of the response go to the Extra of the
// message.
func Answer(response jsontext.Value) (m event.Message, err error) {
	o, err := parts.Open(response)
	if err != nil {
		return m, fmt.Errorf("%w: %w", render.ErrAnswer, err)
	}
	content := o.Take("content")
	if content.Kind() != '[' {
		return m, fmt.Errorf("%w: content is not an array", render.ErrAnswer)
	}
	m = event.Message{Role: event.Assistant, Provider: modelapi.Anthropic, ResponseID: o.Maybe("id"), Model: o.Maybe("model")}
	m.StopReason = o.Maybe("stop_reason")
	if m.Parts, err = (&parts.Reader{}).Content(content); err != nil {
		return m, fmt.Errorf("%w: %w", render.ErrAnswer, err)
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
