package flow

import "context"

// Chat is the turn function of an agent that answers with a model, and runs the tools
// that the model calls until it calls none. r.System, r.Model and r.Parameters configure
// the calls; r.Messages is ignored.
func Chat[S any](m Model, r Request, tools ...Tool) func(context.Context, *Turn[S]) error {
	r.Tools, r.Messages = tools, nil
	return func(ctx context.Context, t *Turn[S]) error {
		for {
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
