package fork

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Merge appends a child_merged event to parent, with the outcome of child: the Agent, the
// Summary for the parent's model, the Note for people, the ArtifactIDs, the EpisodeID and
// the Usage. The ChildID is the run's id in the parent; the child's session id if empty.
// The CallID is the tool call of the parent that the child answers. Merge sets the other
// members.
//
// The child is a fork of the parent, at any depth, or the session of a run that the parent
// started; any other session is "unrelated". Merge does not change the child.
func Merge(ctx context.Context, log *eventlog.Log, parent, child string, outcome event.Child) (event.Head, error) {
	c, err := relation(ctx, log, parent, child)
	if err != nil {
		return event.Head{}, fmt.Errorf("merge session %q into %q: %w", child, parent, err)
	}
	o := &outcome
	c.ChildSessionID, c.ChildID, c.CallID = child, cmp.Or(o.ChildID, child), cmp.Or(o.CallID, c.CallID)
	c.Agent, c.Summary, c.Note, c.ArtifactIDs, c.EpisodeID, c.Usage = o.Agent, o.Summary, o.Note, o.ArtifactIDs, o.EpisodeID, o.Usage
	c.State = event.ChildMerged
	head, err := appendUntilKnown(ctx, log, parent, eventlog.Any(), event.New(c))
	if err != nil {
		return event.Head{}, fmt.Errorf("merge session %q into %q: %w", child, parent, err)
	}
	return head, nil
}

// relation is the beginning of the child_merged event: how the child began.
func relation(ctx context.Context, log *eventlog.Log, parent, child string) (c event.Child, err error) {
	if _, err := log.Head(ctx, parent); err != nil {
		return c, err
	}
	first, err := firstOwn(ctx, log, child)
	if err != nil {
		return c, err
	}
	if first.Type.Name() == event.SessionStarted {
		return runOf(ctx, log, parent, &first)
	}
	for a, err := range log.Ancestors(ctx, child) {
		if err != nil {
			return c, err
		}
		if a.Session == parent {
			c.Mode, c.ParentEventID = event.ChildFork, a.Fork.EventID
			return c, nil
		}
	}
	return c, errUnrelated
}

// runOf is the relation of the session of a run, which begins with first.
func runOf(ctx context.Context, log *eventlog.Log, parent string, first *event.Event) (c event.Child, err error) {
	e, err := log.Event(ctx, first.SessionID, first.Seq) // with spilled data
	if err != nil {
		return c, err
	}
	s, err := event.DecodeKept[event.Session](&e)
	if err != nil || s.Parent.SessionID != parent {
		return c, errors.Join(err, errUnrelated)
	}
	c.Mode, c.ParentEventID, c.CallID = event.ChildFresh, s.Parent.EventID, s.Parent.CallID
	return c, nil
}
