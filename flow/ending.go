package flow

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// endTurn appends the end of a turn, unless it stays open. The caller holds r.mu.
func (r *runner) endTurn(ctx context.Context, t *turn, failed error) error {
	durable := trace.ContextWithSpan(context.WithoutCancel(ctx), t.span)
	var pause *Hibernated
	if t.halt != nil && !errors.Is(t.halt, ErrAborted) {
		failed = t.halt
	}
	switch {
	case t.aborted != nil:
		return r.endAborted(durable, t)
	case errors.Is(t.halt, errAgain):
		return nil
	case errors.As(failed, &pause) && t.halt != nil:
		r.logLine(ctx, "turn hibernated")
		return nil
	case ctx.Err() != nil && failed != nil:
		return context.Cause(ctx)
	case errors.Is(failed, ErrLimit):
		return r.endCompleted(durable, t, "limit")
	case failed == nil && t.replaying():
		return t.rec.difference(t.rec.reached(t.next), strconv.Itoa(t.next), "end", "another effect", "the end of the turn")
	case failed == nil:
		return r.endCompleted(durable, t, t.reason())
	case leaveOpen(failed) || t.halt != nil:
		return failed
	}
	return r.endFailed(durable, t, failed)
}

// reason is the stop reason of a turn that ended by itself.
func (t *turn) reason() string {
	switch {
	case t.stopReason != "":
		return t.stopReason
	case t.lastStop != "":
		return t.lastStop
	}
	return "stop"
}

// complete appends the end of a turn that stays on the path. t is nil if the turn was not
// executed.
func (r *runner) complete(ctx context.Context, rec *records, t *turn, c event.TurnCompletion) error {
	c.TurnID, c.Steps, c.Usage = rec.turn, rec.spent.calls, rec.spent.usage
	c.DurationMS = rec.spent.busy.Milliseconds()
	if t != nil {
		c.DurationMS = t.elapsed().Milliseconds()
	}
	err := r.append(ctx, func() ([]event.Event, error) {
		if t != nil && t.aborted != nil && c.Status == event.TurnStatusCompleted {
			return nil, ErrAborted
		}
		var events []event.Event
		if t != nil {
			t.dropReplayed()
			t.goLive()
			var err error
			if events, err = t.flush(); err != nil {
				return nil, err
			}
		}
		events = append(events, interrupt(r.openCalls(events))...)
		if c.Status != event.TurnStatusCompleted {
			canceled, err := r.abortChildren(ctx, c.Error)
			if err != nil {
				return nil, err
			}
			events = append(events, canceled...)
		}
		return append(events, event.New(c)), nil
	})
	if err != nil {
		return err
	}
	if t != nil {
		t.end = &c
	}
	return r.ended(ctx, rec, c, nil)
}

// abortChildren aborts the children that still run when the turn ends.
func (r *runner) abortChildren(ctx context.Context, reason string) ([]event.Event, error) {
	p, err := r.pending(ctx)
	if err != nil {
		return nil, err
	}
	return abortChildren(ctx, r.log, &p, event.Abort{By: r.options.Runner, Reason: reason})
}

func (r *runner) endCompleted(ctx context.Context, t *turn, reason string) error {
	err := r.complete(ctx, t.rec, t, event.TurnCompletion{Status: event.TurnStatusCompleted, StopReason: reason})
	switch {
	case errors.Is(err, ErrAborted):
		return r.endAborted(ctx, t)
	case errors.Is(err, event.ErrInvalid):
		return r.endFailed(ctx, t, err)
	}
	return err
}

// endAborted keeps the messages of the turn. Calls without a result are interrupted.
func (r *runner) endAborted(ctx context.Context, t *turn) error {
	return r.complete(ctx, t.rec, t, event.TurnCompletion{Status: event.TurnStatusAborted, StopReason: "aborted", Error: t.aborted.Reason})
}

// endFailed appends that a turn failed and moves the head to before it, as one append.
func (r *runner) endFailed(ctx context.Context, t *turn, failed error) error {
	code := t.recordedError(failed).Code
	c := event.TurnCompletion{TurnID: t.rec.turn, Status: event.TurnStatusFailed, StopReason: "failed", Code: code, Error: clean(failed),
		Steps: t.rec.spent.calls, Usage: t.rec.spent.usage, DurationMS: t.elapsed().Milliseconds()}
	events := []event.Event{event.New(c), event.New(event.HeadMove{To: t.rec.before, Reason: "the turn failed"})}
	err := r.append(ctx, func() ([]event.Event, error) {
		if t.aborted != nil {
			return nil, ErrAborted
		}
		return events, nil
	})
	if errors.Is(err, ErrAborted) {
		return r.endAborted(ctx, t)
	}
	if err != nil {
		return err
	}
	t.end = &c
	return r.ended(ctx, t.rec, c, &TurnError{Session: r.session, Turn: t.rec.turn, Code: code, Err: failed})
}

// ended makes the snapshot at the end of a turn, and tells the client.
func (r *runner) ended(ctx context.Context, rec *records, c event.TurnCompletion, failed error) error {
	end := TurnEnd{Turn: rec.turn, Status: c.Status, StopReason: c.StopReason}
	r.logLine(ctx, "turn ended", "turn", c.TurnID.String(), "status", string(c.Status), "stop_reason", c.StopReason)
	if failed == nil {
		q := projection.Request{Trigger: projection.TurnEnd, TurnIndex: rec.start.Index, ID: rec.snapshotID()}
		var err error
		if end.Snapshot, err = r.snapshot(ctx, q); err != nil {
			return err
		}
		r.out.endTurn(item{Chunk: Chunk{Snapshot: end.Snapshot, EndTurn: &end}})
	}
	r.last = lastTurn{end: end, err: failed, index: rec.start.Index}
	r.ends[rec.start.InputID] = r.last
	for id := range r.steered {
		r.ends[id] = r.last
	}
	clear(r.steered)
	if failed != nil {
		r.out.endTurn(item{err: failed})
	}
	return nil
}
