// Package replay has an agent, and a test of it with a recorded session.
package replay

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Model answers a history, Tool runs a call.
type (
	Model func(context.Context, []projection.Entry) (event.Event, error)
	Tool  func(context.Context, event.Part) (event.Part, error)
)

// run asks the model until it answers without a call.
func run(ctx context.Context, l *eventlog.Log, session, text string, model Model, tool Tool) error {
	if _, err := l.Append(ctx, session, eventlog.New(), event.UserMessage(text)); err != nil {
		return err
	}
	live, err := projection.Resume(ctx, l, session, projection.Session())
	for err == nil {
		history, _ := projection.State(live, projection.History())
		messages, err := history.Messages()
		if err != nil {
			return err
		}
		answer, err := model(ctx, messages)
		if err != nil {
			return err
		}
		if _, err = live.Append(ctx, answer); err != nil {
			return err
		}
		m, _, err := event.Decode[event.Message](&answer)
		calls := m.ToolCalls()
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, call := range calls {
			result, err := tool(ctx, call)
			if err != nil {
				return err
			}
			if _, err := live.Append(ctx, event.ToolMessage(result)); err != nil {
				return err
			}
		}
	}
	return err
}
