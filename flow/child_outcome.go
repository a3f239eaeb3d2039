package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// outcome prepares the events that tell the outcome of a finished child. They are appended
// with the result of the effect.
func (c *child) outcome(answer *event.Message, spend projection.Spend) {
	var summary string
	if answer != nil {
		summary = answer.Text()
	}
	artifacts := c.artifacts()
	var ids []string
	for _, a := range artifacts {
		ids = append(ids, a.ArtifactID)
		c.run.after = append(c.run.after, event.New(a))
	}
	done := event.Child{State: event.ChildCompleted, Summary: summary, ArtifactIDs: ids, Usage: spend.Usage}
	merged := event.Child{State: event.ChildMerged, ArtifactIDs: ids}
	c.run.after = append(c.run.after, event.New(c.event(done)), event.New(c.event(merged)))
}

// workspaceFile is the kind of an artifact that refers to a file of the program's workspace.
// A child run does not pass it on to its parent.
const workspaceFile = "workspace_file_ref"

// artifacts are the artifacts that the child made, without references to workspace files.
func (c *child) artifacts() (made []event.Artifact) {
	c.runner.mu.Lock()
	defer c.runner.mu.Unlock()
	info, _ := projection.State(c.runner.live, projection.Info())
	list, _ := projection.State(c.runner.live, projection.Artifacts())
	for _, x := range list.Items {
		if x.Redacted || x.Seq <= info.Fork.Seq || x.Kind == workspaceFile {
			continue
		}
		a := x.Artifact
		if a.SessionID == "" {
			a.ChildID, a.SessionID = c.run.Key, c.id
		}
		made = append(made, a)
	}
	return made
}

// ended finds the outcome of the effect after the child's runner has ended.
func (c *child) ended(ctx context.Context, status Status, err error) error {
	var pause *Hibernated
	var failed *TurnError
	var not refused
	switch {
	case err == nil && status == StatusFinished:
		return nil
	case errors.As(err, &not):
		return not.error
	case ctx.Err() != nil && c.run.turn.stopping():
		return ctx.Err()
	case ctx.Err() != nil:
		return c.abort(ctx)
	case errors.As(err, &pause):
		return c.blocked(ctx, pause)
	case errors.As(err, &failed):
		c.run.after = append(c.run.after, event.New(c.event(event.Child{State: event.ChildFailed, Error: clean(failed.Err)})))
		return &EffectError{Name: c.name, Code: failed.Code, Message: clean(failed.Err)}
	case err != nil:
		return c.run.turn.stop(c.stopped(err))
	case status == StatusAborted:
		return c.canceled()
	}
	return nil
}

func (c *child) stopped(err error) error {
	e := &childError{session: c.id, err: err}
	if c.runner != nil {
		c.runner.mu.Lock()
		defer c.runner.mu.Unlock()
		e.head = c.runner.live.Head
	}
	return e
}

// abort aborts the child, because the effect was aborted or its time ended.
func (c *child) abort(ctx context.Context) error {
	cause := context.Cause(ctx)
	_, err := Abort(context.WithoutCancel(ctx), c.log, c.id, event.Abort{By: c.parent.options.Runner, Reason: clean(cause)})
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return c.run.turn.stop(fmt.Errorf("child session %q: %w", c.id, err))
	}
	_ = c.canceled()
	return ctx.Err()
}

func (c *child) canceled() error {
	c.run.after = append(c.run.after, event.New(c.event(event.Child{State: event.ChildCanceled, Reason: ErrAborted.Error()})))
	return &EffectError{Name: c.name, Code: codeCanceled, Message: fmt.Sprintf("child session %q was aborted", c.id)}
}

// blocked records the reviews of the child in the parent's log. The turn hibernates after the
// other effects of the batch.
func (c *child) blocked(ctx context.Context, h *Hibernated) error {
	var events []event.Event
	for _, r := range h.Reviews {
		events = append(events, event.New(c.event(event.Child{State: event.ChildBlocked, InterruptID: r.InterruptID})))
	}
	if len(events) == 0 {
		events = append(events, event.New(c.event(event.Child{State: event.ChildBlocked, Status: h.Cursor.Kind})))
	}
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	if err := c.parent.appendEvents(context.WithoutCancel(ctx), events...); err != nil {
		return c.run.turn.failed(err)
	}
	c.run.blocked = true
	return h
}
