package main

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// carrier is an agent that the support asks, in a session of its own.
func carrier(m flow.Model) *flow.Agent[struct{}] {
	return &flow.Agent[struct{}]{Name: "carrier",
		Turn: flow.Chat[struct{}](m, flow.Request{System: "You track parcels. Answer in one sentence."}, track)}
}

// The two steps of the carrier.
func find(_ context.Context, r *flow.Request) (flow.Response, error) {
	return calls(r, "", "track", `{"id":%q}`), nil
}

func report(_ context.Context, r *flow.Request) (flow.Response, error) {
	return answer(result(r)), nil
}

// answer is an answer with a text, and with calls.
func answer(text string, calls ...event.Part) flow.Response {
	var parts []event.Part
	if text != "" {
		parts = append(parts, event.Text(text))
	}
	return flow.Response{Message: event.Message{Parts: append(parts, calls...)}}
}
