package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
)

// record runs the agent with its model and its tools. Without a decision, the customer asks
// for no money.
func record(t *testing.T, path, session string, decision event.Decision) {
	*dir = filepath.Join(t.TempDir(), "support") // the refunds are noted beside it
	m, err := newModels(*model, *url)
	if err != nil {
		t.Fatal(err)
	}
	question := flow.Text("Where is order A1?")
	if decision != "" {
		question = flow.Text("It is broken. Please refund it: A1.")
	}
	agent := support(nil, m, system, compacts)
	flowtest.Record(t, agent, path, session, func(ctx context.Context, a *flow.Agent[customer]) error {
		_, err := a.Run(ctx, session, question)
		var pause *flow.Hibernated
		if errors.As(err, &pause) {
			answer := flow.Answer{Review: pause.Reviews[0], Decision: decision}
			answer.By, answer.Reason = "ada", "looked at it"
			_, err = flow.Decide(ctx, a.Log, session, answer)
		}
		if err == nil {
			_, err = a.Run(ctx, session, flow.Text("Where is A2, then?"))
		}
		return err
	})
}
