//go:build unix

package torture

import (
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// resume continues a session until it has nothing to do, or its turn hibernates.
func resume[S any](ctx context.Context, a *flow.Agent[S], session string) (flow.Output[S], error) {
	h, err := a.Resume(ctx, flow.Ref{Session: session})
	if err != nil {
		return flow.Output[S]{}, err
	}
	return h.Wait(ctx)
}

// post stores an input, as a process without the agent does.
func post(ctx context.Context, log *eventlog.Log, session string, in flow.Input) error {
	in.PostOnly = true
	_, err := (&flow.Agent[tally]{Name: "script", Log: log}).Send(ctx, session, in)
	return err
}

// untilEnd waits for the end of a turn. Other processes answer its reviews.
func untilEnd[S any](ctx context.Context, h *flow.Handle[S]) (flow.Output[S], error) {
	for {
		out, err := h.Wait(ctx)
		if !errors.As(err, new(*flow.Hibernated)) {
			return out, err
		}
	}
}
