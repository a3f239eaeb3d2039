package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/raw"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// ChildOptions configure RunChild. The zero value begins the child without a history.
type ChildOptions struct {
	// Mode says what the child knows of its parent: nothing (event.ChildFresh, the default),
	// Context (event.ChildHandoff), or the history (event.ChildFork).
	Mode event.ChildMode
	// Context is given to the model of the child before its input, in mode event.ChildHandoff.
	Context string
}

// RunChild runs another agent inside an effect, in a session of its own, and returns its
// output. The effect must be of class pure or idempotent, and can run one child. If the
// effect runs again after a kill, it continues the same child session. In mode
// event.ChildFork, the call of the effect is answered for the child's model.
//
// If the child hibernates, the turn hibernates too, whatever the effect returns. Its
// reviews are reviews of the parent: Hibernated has them, and Decide takes their answers in
// either session. An abort of the turn aborts the child. The artifacts of a child that
// finished become artifacts of the parent, without references to workspace files. Its cost
// stays in its own session.
//
// The errors are ErrStart for options that contradict each other, ErrChildLimit, and the
// error of a child that failed or was aborted. Errors that leave the turn of the child open
// end the run of the parent.
func RunChild[S any](ctx context.Context, a *Agent[S], in Input, o ChildOptions) (Output[S], error) {
	run, ok := runningOf(ctx)
	if !ok {
		return Output[S]{}, fmt.Errorf("run a child: %w", errOutside)
	}
	agent := *a
	if agent.Log == nil {
		agent.Log = run.turn.r.log
	}
	s, err := agent.settings(true)
	if err != nil {
		return Output[S]{}, err
	}
	c := newChild(run, s, in)
	c.ChildOptions = o
	ctx = raw.With(context.WithValue(ctx, runningKey{}, (*running)(nil)), nil)
	r, err := c.start(ctx)
	if err != nil {
		return Output[S]{}, c.ended(ctx, "", err)
	}
	local := r.begin(ctx)
	<-local.done
	out, err := outputOf[S](ctx, s, &r.live.Loaded)
	out.StopReason, out.Err, out.Snapshots = r.last.end.StopReason, r.last.err, r.snapshots
	if local.err != nil {
		err = local.err
	} else if err == nil {
		err = out.Err
	}
	if err == nil && out.Status == StatusFinished {
		c.outcome(out.Message, out.Spend)
	}
	return out, c.ended(ctx, out.Status, err)
}

// AgentTool is a tool that runs another agent. The call has the task as a text, and its
// result is the last message of the agent. See RunChild.
func AgentTool[S any](name, description string, a *Agent[S], o ChildOptions, options ...ToolOption) ToolSpec {
	type call struct {
		Task string `json:"task"`
	}
	t := Tool(name, description, func(ctx context.Context, c call) (string, error) {
		out, err := RunChild(ctx, a, Text(c.Task), o)
		if err != nil || out.Message == nil {
			return "", err
		}
		return out.Message.Text(), nil
	}, options...)
	if a.Name == "" || a.Turn == nil {
		t.invalid = errNoName
	}
	return t
}

// The default limits of children.
const (
	defaultChildren = 64
	defaultDepth    = 8
)

// child is a child run of an effect.
type child struct {
	ChildOptions
	*settings
	run    *running
	parent *runner
	id     string // of the child session
	input  Input
	known  projection.OpenChild // what the parent's log has of it
	runner *runner
}

func newChild(run *running, s *settings, in Input) *child {
	c := &child{settings: s, run: run, parent: run.turn.r, input: in, id: uuid.NewSHA1(uuid.Nil, []byte("child/"+run.Key)).String()}
	s.agent, s.depth, s.root = nil, c.parent.depth+1, c.parent.origin()
	if s.options.Observe.Sinks == nil {
		s.options.Observe.Sinks = c.parent.options.Observe.Sinks
	}
	c.input.ID = "child/" + run.Key
	return c
}

// start begins or continues the child session, and tells the parent's log.
func (c *child) start(ctx context.Context) (*runner, error) {
	if err := c.check(); err != nil {
		return nil, refused{err}
	}
	_, err := c.log.Head(ctx, c.id)
	missing := errors.Is(err, eventlog.ErrNotFound)
	switch {
	case missing:
		err = c.begin(ctx)
	case err == nil && c.known.State != event.ChildRequested:
		err = c.report(ctx, event.Child{State: event.ChildProgressed, Status: "resumed"})
	}
	if err != nil {
		return nil, err
	}
	o, err := c.open(ctx, c.from())
	if err != nil {
		return nil, err
	}
	r := o.r
	r.out.close()
	c.runner = r
	if c.known.State == event.ChildRequested {
		err = c.report(ctx, event.Child{State: event.ChildStarted})
	}
	if err != nil {
		_, released := r.release(context.WithoutCancel(ctx), err)
		return nil, errors.Join(err, released)
	}
	return r, nil
}

// refused is an error of a child that did not begin.
type refused struct{ error }

func (e refused) Unwrap() error { return e.error }

// check returns an error for options that cannot work, before anything is appended.
func (c *child) check() error {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	control, _ := projection.State(c.parent.live, projection.Control())
	for _, x := range control.Children {
		if x.ChildID == c.run.Key {
			c.known = x
		}
	}
	limits := c.parent.options.Limits
	switch {
	case c.run.child != nil:
		return fmt.Errorf("%w: an effect runs one child: use Batch for several", ErrStart)
	case c.log != c.parent.log:
		return fmt.Errorf("%w: the child has another log than its parent", ErrStart)
	case c.run.class != event.EffectIdempotent && c.run.class != event.EffectPure:
		return fmt.Errorf("%w: an effect of class %s cannot run a child", ErrStart, c.run.class)
	case c.Context != "" && c.Mode != event.ChildHandoff:
		return fmt.Errorf("%w: Context is for the mode %s, not %q", ErrStart, event.ChildHandoff, c.Mode)
	case c.Mode != c.Mode.Known():
		return fmt.Errorf("%w: there is no mode %q", ErrStart, c.Mode)
	case c.depth > limits.Depth:
		return fmt.Errorf("%w: depth %d of %d", ErrChildLimit, c.depth, limits.Depth)
	case c.known.ChildID == "" && c.siblings() >= limits.Children:
		return fmt.Errorf("%w: %d children", ErrChildLimit, limits.Children)
	}
	c.run.child = c
	if c.known.ChildID != "" {
		return nil // the child has its input, which may have been erased since
	}
	return c.input.check()
}

// siblings is the number of children of the turn. The caller holds the parent's mu.
func (c *child) siblings() (n int) {
	children, _ := projection.State(c.parent.live, projection.Children())
	for _, x := range children.Runs {
		if x.Seq > c.run.turn.rec.seq {
			n++
		}
	}
	return n
}

// begin appends the request to the parent's log. In mode fork it makes the session.
func (c *child) begin(ctx context.Context) error {
	if c.known.ChildID == "" {
		var task []string
		for _, m := range c.input.Messages {
			task = append(task, m.Text())
		}
		requested := event.Child{State: event.ChildRequested, ParentEventID: c.run.intent, Task: strings.Join(task, "\n\n")}
		if err := c.report(ctx, requested); err != nil {
			return err
		}
	}
	c.known.State = event.ChildRequested
	if c.Mode != event.ChildFork {
		return nil
	}
	options := fork.Options{ID: c.id, Force: true, Child: event.ForkChild{ChildID: c.run.Key, CallID: c.run.CallID}}
	_, err := fork.At(ctx, c.log, c.parent.session, fork.AtSeq(c.run.begun), options)
	return err
}

// from is the start of the child's session.
func (c *child) from() *start {
	from := &start{session: c.id, in: &c.input, here: true}
	from.parent = event.SessionParent{SessionID: c.parent.session, EventID: c.run.intent, CallID: c.run.CallID}
	if c.Mode == event.ChildHandoff {
		from.content = func(*settings) ([]event.Event, error) {
			entry := event.ContextEntry{Kind: "handoff", Placement: event.AsPrefix, Parts: []event.Part{event.Text(c.Context)}}
			return []event.Event{event.New(entry)}, event.Validate(entry)
		}
	}
	return from
}

// report appends a child event to the parent's log.
func (c *child) report(ctx context.Context, p event.Child) error {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	return c.parent.appendEvents(ctx, event.New(c.event(p)))
}

// event completes the payload of a child event.
func (c *child) event(p event.Child) event.Child {
	p.ChildID, p.ChildSessionID, p.CallID = c.run.Key, c.id, c.run.CallID
	p.Agent, p.Mode = c.name, c.Mode
	return p
}
