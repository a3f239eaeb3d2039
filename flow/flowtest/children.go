package flowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// Child is an agent that runs in the sessions of children (flow.RunChild).
type Child struct {
	name string
	run  func(ctx context.Context, log *eventlog.Log, session string, o Options) (Result, error)
}

// ChildOf makes a Child of an agent.
func ChildOf[S any](agent *flow.Agent[S]) Child {
	return Child{agent.Name, func(ctx context.Context, log *eventlog.Log, session string, o Options) (Result, error) {
		return play(ctx, agent, log, session, o)
	}}
}

// childRun is a child of a recorded effect.
type childRun struct {
	event.Child
	effect string // its place: the number of the turn and the ordinal
}

// children are the children of the effects of a tape, in order.
func (t *tape) children() (list []childRun) {
	for _, x := range t.items {
		if x.turn == nil {
			continue
		}
		for n := range x.turn.count {
			if s := x.turn.steps[n]; s != nil {
				list = append(list, s.children(x.turn.number)...)
			}
		}
	}
	return list
}

func (s *step) children(turn int) (list []childRun) {
	for _, x := range s.effects {
		for i := range x.children {
			c, ok, err := event.Decode[event.Child](&x.children[i])
			if ok && err == nil && c.EventType() == event.ChildStarted.Type() && c.ChildSessionID != "" {
				list = append(list, childRun{c, fmt.Sprintf("%d/%s", turn, x.ordinal)})
			}
		}
	}
	return list
}

// replayChildren replays the sessions of children whose agents the options have.
func (p *player) replayChildren(ctx context.Context, r *Result) error {
	for _, c := range p.tape.children() {
		i := slices.IndexFunc(p.options.Children, func(x Child) bool { return x.name == c.Agent })
		if i < 0 {
			r.Skipped = append(r.Skipped, c.ChildSessionID)
			continue
		}
		if err := p.checkChild(ctx, &c); err != nil {
			return err
		}
		o := p.options
		o.parents = append(slices.Clone(o.parents), p.tape.session)
		o.approved, o.place = p.prompts, p.options.place+c.effect+"/"
		child, err := p.options.Children[i].run(ctx, p.tape.log, c.ChildSessionID, o)
		if child.Log != nil {
			err = errors.Join(err, child.Log.Close())
		}
		if err != nil {
			return err
		}
		r.Turns += child.Turns
		r.Unchecked += child.Unchecked
		r.Skipped = append(r.Skipped, child.Skipped...)
	}
	return nil
}

// checkChild refuses a child whose session is missing, or is one of its parents.
func (p *player) checkChild(ctx context.Context, c *childRun) error {
	if c.ChildSessionID == p.tape.session || slices.Contains(p.options.parents, c.ChildSessionID) {
		return fmt.Errorf("%w: child session %q is its own parent", ErrNotServed, c.ChildSessionID)
	}
	_, err := p.tape.log.Head(ctx, c.ChildSessionID)
	if errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("%w: the recording does not have child session %q of agent %q: export it too (logtool export --below), or leave the agent out of Options.Children",
			ErrNotServed, c.ChildSessionID, c.Agent)
	}
	return err
}

// childSessions are the sessions of the children of a session, and of their children.
func childSessions(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	var list []string
	err := addChildren(ctx, log, session, &list)
	return list, err
}

// addChildren adds the sessions of children that list does not have.
func addChildren(ctx context.Context, log *eventlog.Log, session string, list *[]string) error {
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return err
		}
		c, ok, err := event.Decode[event.Child](&e)
		if err != nil {
			return err
		}
		if !ok || c.EventType() != event.ChildStarted.Type() || e.SessionID != session || slices.Contains(*list, c.ChildSessionID) {
			continue
		}
		if _, err := log.Head(ctx, c.ChildSessionID); errors.Is(err, eventlog.ErrNotFound) {
			continue // it was not exported
		}
		*list = append(*list, c.ChildSessionID)
		if err := addChildren(ctx, log, c.ChildSessionID, list); err != nil {
			return err
		}
	}
	return nil
}
