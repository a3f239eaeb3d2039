package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Script is a Model for tests and demonstrations: it gives prepared answers. A request
// chooses its answer by its history alone, so that a turn that is executed again after a
// crash gets the same answers.
type Script struct {
	Answers []ScriptAnswer
	// Next returns the index of the answer to a request. If nil, the index is the number
	// of assistant messages after the last user message, so every turn gets the same
	// answers.
	Next func(r *Request) int
}

// ScriptAnswer is an answer of a Script: the result of Make, or else Err, or else
// Response.
type ScriptAnswer struct {
	// Response is the answer. An empty role, provider, model and stop reason of its
	// message are filled in.
	Response Response
	// Err is returned at every attempt. Use Make for an attempt that fails once.
	Err error
	// Make makes the answer for a request.
	Make func(ctx context.Context, r *Request) (Response, error)
}

// ScriptText is an answer with a text, and with calls of tools: see event.ToolCall.
func ScriptText(text string, calls ...event.Part) ScriptAnswer {
	var m event.Message
	if text != "" {
		m.Parts = append(m.Parts, event.Text(text))
	}
	m.Parts = append(m.Parts, calls...)
	return ScriptAnswer{Response: Response{Message: m}}
}

const scriptProvider = "script"

// Generate emits the answer in words, and returns it. A request after the last answer is
// a permanent *ModelError.
func (s Script) Generate(ctx context.Context, r *Request, emit func(eventlog.Delta)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	answer, err := s.answer(ctx, r)
	if err != nil {
		return Response{}, err
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

// answer chooses the answer to a request.
func (s Script) answer(ctx context.Context, r *Request) (Response, error) {
	next := s.Next
	if next == nil {
		next = stepOf
	}
	n := next(r)
	if n < 0 || n >= len(s.Answers) {
		return Response{}, &ModelError{
			Provider: scriptProvider, Final: true,
			Message: fmt.Sprintf("the script has %d answers, and was asked for answer %d", len(s.Answers), n+1),
		}
	}
	a := s.Answers[n]
	if a.Make != nil {
		return a.Make(ctx, r)
	}
	a.Response.Message.Parts = slices.Clone(a.Response.Message.Parts)
	return a.Response, a.Err
}

// stepOf counts the assistant messages after the last user message.
func stepOf(r *Request) (n int) {
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
