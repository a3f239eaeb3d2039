package openai

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/render"
)

// ChatAnswer parses a response of Chat Completions, without streaming, as the message
// of its first choice. Its parts are reasoning, text, refusal and calls, in this order.
// Arguments that are no JSON become a JSON string. A call without an id gets one.
//
// The provider is "openai". Unknown members of the message go to its Extra, unknown
// members of the choice to the member "choice" of the Extra, and unknown members of the
// response to the member "response".
func ChatAnswer(response jsontext.Value) (m event.Message, err error) {
	o, err := parts.Open(response)
	if err != nil {
		return m, fmt.Errorf("%w: %w", render.ErrAnswer, err)
	}
	choice, inner, err := firstChoice(&o)
	if err != nil {
		return m, err
	}
	m = event.Message{Role: event.Assistant, Provider: modelapi.OpenAI, ResponseID: o.Maybe("id"), Model: o.Maybe("model")}
	m.StopReason = choice.Maybe("finish_reason")
	inner.Take("role")
	if m.Parts, err = (&parts.Reader{}).ChatContent(&inner); err != nil {
		return m, fmt.Errorf("%w: %w", render.ErrAnswer, err)
	}
	m.Parts = append(m.Parts, parts.ChatReply(&inner, func(n int) string {
		return fmt.Sprintf("%s_%d", cmp.Or(m.ResponseID, "call"), n)
	})...)
	if u, ok := parts.Usage(o.Peek("usage")); ok {
		o.Take("usage")
		m.Usage = u
	}
	o.Take("object")
	choice.Take("index")
	inner.Put("choice", choice.RestWithoutNulls())
	inner.Put("response", o.RestWithoutNulls())
	m.Extra = inner.RestWithoutNulls()
	return m, nil
}

// firstChoice takes the first choice of a response and its message. Other choices stay.
func firstChoice(o *parts.Members) (choice, message parts.Members, err error) {
	choices, err := rawjson.Elements(o.Take("choices"))
	if err != nil || len(choices) == 0 {
		return choice, message, fmt.Errorf("%w: choices are missing", render.ErrAnswer)
	}
	if choice, err = parts.Open(choices[0]); err == nil {
		message, err = parts.Open(choice.Take("message"))
	}
	if err != nil {
		return choice, message, fmt.Errorf("%w: the first choice has no message: %w", render.ErrAnswer, err)
	}
	if len(choices) > 1 {
		o.Put("choices", rawjson.Array(choices[1:]))
	}
	return choice, message, nil
}
