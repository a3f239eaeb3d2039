package flowtest_test

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// resume continues a session until its turn ends or waits.
func resume[S any](ctx context.Context, a *flow.Agent[S], session string) (flow.Output[S], error) {
	return resumeAt(ctx, a, flow.Ref{Session: session})
}

func resumeAt[S any](ctx context.Context, a *flow.Agent[S], at flow.Ref) (flow.Output[S], error) {
	h, err := a.Resume(ctx, at)
	if err != nil {
		return flow.Output[S]{}, err
	}
	return h.Wait(ctx)
}

// again sends the input of the newest turn again.
func again[S any](ctx context.Context, a *flow.Agent[S], session string) (flow.Output[S], error) {
	in := flow.Text("again")
	for e, err := range a.Log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return flow.Output[S]{}, err
		}
		if p, ok, _ := event.Decode[event.TurnStart](&e); ok {
			in.ID = p.InputID
		}
	}
	return a.Run(ctx, session, in)
}

func answerTo(r projection.OpenApproval, d event.Decision) flow.Answer {
	return flow.Answer{Review: r, Decision: d}
}

// always is a model with one answer.
type always func() (event.Message, error)

func (f always) Generate(context.Context, *flow.Request, func(eventlog.Delta)) (flow.Response, error) {
	m, err := f()
	m.StopReason = "stop"
	return flow.Response{Message: m}, err
}

func said(text string, calls ...event.Part) event.Message {
	return event.Message{Parts: append([]event.Part{event.Text(text)}, calls...)}
}
