package flow

import (
	"context"
	"errors"

	"github.com/convlog/convlog/projection"
)

// Chat is the turn function of an agent that answers with a model, and runs the tools
// that the model calls until it calls none. r.System, r.Model and r.Parameters configure
// the calls; r.Messages is ignored. Chat compacts the history if Options.Compact says so.
func Chat[S any](m Model, r Request, tools ...ToolSpec) func(context.Context, *Turn[S]) error {
	r.Tools, r.Messages = tools, nil
	return func(ctx context.Context, t *Turn[S]) error {
		if err := t.t.checkTools(tools); err != nil {
			return err
		}
		for {
			if err := t.t.compactIfLong(ctx, m, r); err != nil {
				return err
			}
			answer, err := t.Model(ctx, m, r)
			if err != nil {
				return err
			}
			calls := answer.ToolCalls()
			if len(calls) == 0 {
				return nil
			}
			if err := t.Tools(ctx, tools, calls); err != nil {
				return err
			}
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
