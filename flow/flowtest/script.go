package flowtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// Script is a model for tests and demonstrations: it gives prepared answers. The answer of a
// request is chosen by its history alone: its index is the number of assistant messages after
// the last user message. So every turn gets the same answers, also a turn that is executed
// again after a crash. An empty role, provider, model and stop reason of an answer are filled
// in.
type Script []func(ctx context.Context, r *flow.Request) (flow.Response, error)

// Say is an answer of a Script: a text, and calls of tools (event.ToolCall).
func Say(text string, calls ...event.Part) func(context.Context, *flow.Request) (flow.Response, error) {
	var parts []event.Part
	if text != "" {
		parts = append(parts, event.Text(text))
	}
	parts = append(parts, calls...)
	return func(context.Context, *flow.Request) (flow.Response, error) {
		return flow.Response{Message: event.Message{Parts: slices.Clone(parts)}}, nil
	}
}

const scriptProvider = "script"

// Generate emits the answer in words, and returns it. A request after the last answer is
// a permanent *flow.ModelError.
func (s Script) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	if err := ctx.Err(); err != nil {
		return flow.Response{}, err
	}
	n := stepOf(r)
	if n >= len(s) {
		return flow.Response{}, &flow.ModelError{
			Provider: scriptProvider, Final: true,
			Message: fmt.Sprintf("the script has %d answers, and was asked for answer %d", len(s), n+1),
		}
	}
	answer, err := s[n](ctx, r)
	if err != nil {
		return flow.Response{}, err
	}
	m := &answer.Message
	m.Role, m.Provider, m.Model = cmp.Or(m.Role, event.Assistant), cmp.Or(m.Provider, scriptProvider), cmp.Or(m.Model, r.Model)
	if m.StopReason == "" {
		m.StopReason = "stop"
		if len(m.ToolCalls()) > 0 {
			m.StopReason = "tool_calls"
		}
	}
	for i := range m.Parts {
		emitWords(i, &m.Parts[i], emit)
	}
	return answer, nil
}

// stepOf counts the assistant messages after the last user message.
func stepOf(r *flow.Request) (n int) {
	for i := range r.Messages {
		switch r.Messages[i].Message.Role {
		case event.User:
			n = 0
		case event.Assistant:
			n++
		}
	}
	return n
}

// emitWords emits a part: a text word by word, arguments at once.
func emitWords(i int, p *event.Part, emit func(eventlog.Delta)) {
	if p.Type == event.ToolCallPart {
		emit(eventlog.Delta{Part: i, Kind: p.Type, Text: string(p.Arguments)})
		return
	}
	for word := range strings.SplitAfterSeq(p.Text, " ") {
		if word != "" {
			emit(eventlog.Delta{Part: i, Kind: p.Type, Text: word})
		}
	}
}
