package flow_test

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/projection"
)

// client sends inputs to one session, and keeps their handles.
type client[S any] struct {
	ctx     context.Context
	agent   *flow.Agent[S]
	session string

	mu      sync.Mutex
	handles []*flow.Handle[S]
}

// connect continues a session, if it exists.
func connect[S any](ctx context.Context, a *flow.Agent[S], session string) (*client[S], error) {
	c := &client[S]{ctx: ctx, agent: a, session: session}
	h, err := a.Resume(ctx, flow.Ref{Session: session})
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		return c, nil
	case err != nil:
		return nil, err
	}
	c.handles = append(c.handles, h)
	return c, nil
}

func (c *client[S]) Send(in flow.Input) error {
	h, err := c.agent.Send(c.ctx, c.session, in)
	if err == nil {
		c.mu.Lock()
		c.handles = append(c.handles, h)
		c.mu.Unlock()
	}
	return err
}

func (c *client[S]) SendText(text string) error { return c.Send(flow.Text(text)) }

func (c *client[S]) all() []*flow.Handle[S] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*flow.Handle[S]{}, c.handles...)
}

func (c *client[S]) last() *flow.Handle[S] {
	all := c.all()
	return all[len(all)-1]
}

func (c *client[S]) Receive() iter.Seq2[flow.Chunk, error] { return c.last().Receive() }

// Output waits for all inputs, and returns the output of the last one.
func (c *client[S]) Output(ctx context.Context) (out flow.Output[S], err error) {
	for _, h := range c.all() {
		out, err = h.Wait(ctx)
	}
	return out, err
}

// Done is closed when no runner of the client is left.
func (c *client[S]) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Output(context.Background())
	}()
	return done
}

// resume continues a session until its turn ends or waits.
func resume[S any](ctx context.Context, a *flow.Agent[S], session string) (flow.Output[S], error) {
	return resumeAt(ctx, a, flow.Ref{Session: session})
}

func resumeAt[S any](ctx context.Context, a *flow.Agent[S], ref flow.Ref) (flow.Output[S], error) {
	h, err := a.Resume(ctx, ref)
	if err != nil {
		return flow.Output[S]{}, err
	}
	return h.Wait(ctx)
}

// post stores an input, as a process without the agent does.
func post(ctx context.Context, log *eventlog.Log, session string, in flow.Input) error {
	in.PostOnly = true
	_, err := (&flow.Agent[struct{}]{Name: "a", Log: log}).Send(ctx, session, in)
	return err
}

func answerTo(r projection.OpenApproval, d event.Decision) flow.Answer {
	return flow.Answer{Review: r, Decision: d}
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

// ask asks about each call of a tool.
func ask(prompt string) func(context.Context, event.Part) (*flow.Question, error) {
	return func(context.Context, event.Part) (*flow.Question, error) { return &flow.Question{Prompt: prompt}, nil }
}

// connectWith answers reviews and continues the session.
func connectWith[S any](ctx context.Context, a *flow.Agent[S], session string, answers ...flow.Answer) (*client[S], error) {
	if _, err := flow.Decide(ctx, a.Log, session, answers...); err != nil {
		return nil, err
	}
	return connect(ctx, a, session)
}
