package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// clerk is a model that needs no network: it repeats what it is told, word by word, and pays
// an order back when it is asked to.
type clerk struct{}

func (clerk) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	last := &r.Messages[len(r.Messages)-1].Message
	answer := "You said: " + last.Text()
	if last.Role == event.Tool {
		answer = "The order is " + last.Parts[0].Content[0].Text + "."
		if last.Parts[0].IsError {
			answer = "I may not do that."
		}
	}
	for _, word := range strings.SplitAfter(answer, " ") {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return flow.Response{}, ctx.Err()
		}
		emit(eventlog.Delta{Kind: event.TextPart, Text: word})
	}
	m := event.Message{Parts: []event.Part{event.Text(answer)}, StopReason: "stop"}
	if _, order, ok := strings.Cut(last.Text(), "refund "); ok && last.Role == event.User {
		id := fmt.Sprintf("call-%d", len(r.Messages))
		order, _, _ = strings.Cut(order, " ")
		arguments, err := jsontext.AppendQuote(nil, cmp.Or(order, "none"))
		if err != nil {
			return flow.Response{}, err
		}
		m.Parts = append(m.Parts, event.ToolCall(id, "refund", jsontext.Value(`{"order":`+string(arguments)+`}`)))
	}
	return flow.Response{Message: m}, nil
}
