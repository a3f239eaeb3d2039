package flow

import (
	"context"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Chat is the turn function of an agent that answers with a model, and runs the tools
// that the model calls until it calls none. r.System, r.Model and r.Parameters configure
// the calls; r.Messages is ignored. Chat compacts the history if Options.Compact says so.
func Chat[S any](m Model, r Request, tools ...ToolSpec) func(context.Context, *Turn[S]) error {
	r.Tools, r.Messages = tools, nil
	return func(ctx context.Context, t *Turn[S]) error {
		_, err := t.t.chat(ctx, m, r)
		return err
	}
}

// chat asks the model and runs its tools until it calls none. It returns the last answer.
func (t *turn) chat(ctx context.Context, m Model, r Request) (event.Message, error) {
	if err := t.checkTools(r.Tools); err != nil {
		return event.Message{}, err
	}
	for {
		if err := t.compactIfLong(ctx, m, r); err != nil {
			return event.Message{}, err
		}
		answer, err := t.model(ctx, m, r)
		if err != nil {
			return event.Message{}, err
		}
		calls := answer.ToolCalls()
		if len(calls) == 0 {
			return answer, nil
		}
		if err := t.tools(ctx, r.Tools, calls); err != nil {
			return event.Message{}, err
		}
	}
}

func (t *turn) compactIfLong(ctx context.Context, m Model, r Request) error {
	long, err := t.needsCompaction()
	if err != nil || !long {
		return err
	}
	for keep := t.r.options.KeepTurns; keep > 0; keep-- {
		refused := (*projection.CompactionError)(nil)
		if err = t.compact(ctx, m, r, keep); !errors.As(err, &refused) || refused.Reason != "empty" {
			return err
		}
	}
	return nil
}
