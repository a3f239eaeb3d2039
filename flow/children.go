package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// childrenOf are the children of the open effects of a session: the id of a child is the
// key of its effect.
func childrenOf(p *projection.Pending) (list []projection.OpenChild) {
	for _, c := range p.Children {
		open := func(x projection.OpenEffect) bool { return x.Key == c.ChildID }
		if c.SessionID != "" && slices.ContainsFunc(p.Effects, open) {
			list = append(list, c)
		}
	}
	return list
}

// abortChildren aborts the children of a session that have not ended, and returns the
// events that tell it.
func abortChildren(ctx context.Context, log *eventlog.Log, p *projection.Pending, a event.Abort) (events []event.Event, err error) {
	a.TurnID = ulid.ULID{}
	for _, x := range childrenOf(p) {
		if _, err := Abort(ctx, log, x.SessionID, a); err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return nil, fmt.Errorf("child session %q: %w", x.SessionID, err)
		}
		events = append(events, event.New(event.Child{State: event.ChildCanceled, ChildID: x.ChildID, ChildSessionID: x.SessionID,
			CallID: x.CallID, Agent: x.Agent, Reason: ErrAborted.Error()}))
	}
	return events, nil
}

// describeChild names the agent of a session that is a fork for a child: the fork has the
// description of the parent.
func (r *runner) describeChild() []event.Event {
	info, _ := projection.State(r.live, projection.Info())
	if info.Fork.Child.ChildID == "" || info.Agent == r.name {
		return nil
	}
	return []event.Event{event.New(event.Session{Updated: true, Agent: r.name})}
}

// answerForChild answers the calls of the parent, if the session is a fork for a child.
func (r *runner) answerForChild() (answers []event.Event) {
	info, _ := projection.State(r.live, projection.Info())
	for _, c := range r.openCalls(nil) {
		if info.Fork.Child.ChildID == "" || c.Seq > info.Fork.Seq {
			continue
		}
		text := siblingAnswer
		if c.CallID == info.Fork.Child.CallID {
			text = childAnswer
		}
		answers = append(answers, event.ToolMessage(event.ToolResult(c.CallID, c.Name, event.Text(text))))
	}
	return answers
}

// The results of calls of the parent, for the model of a child that is a fork.
const (
	childAnswer   = "You are the sub-agent that this call began. Your task follows."
	siblingAnswer = "This call is not part of your task."
)
