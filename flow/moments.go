package flow

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// snapshot appends a snapshot, after the events that others may have appended. It returns the
// id, empty if the policy declines. The caller holds r.mu.
func (r *runner) snapshot(ctx context.Context, q projection.Request) (id string, err error) {
	ctx, span := r.telemetry.tracer.Start(ctx, "snapshot", trace.WithAttributes(attrConversation.String(r.session), attrAgent.String(r.name), attrSnapshot.String(q.ID)))
	defer span.End()
	for {
		var s event.Snapshot
		var made bool
		err := bounded(ctx, func() (err error) {
			s, made, err = r.live.Snapshot(ctx, q)
			return err
		})
		if errors.Is(err, eventlog.ErrConflict) {
			if err := r.follow(ctx); err != nil {
				return "", err
			}
			continue
		}
		if err != nil || !made {
			return "", err
		}
		r.snapshots = append(r.snapshots, s.SnapshotID)
		return s.SnapshotID, nil
	}
}

// offer asks the policy for a snapshot at a moment that has none without a policy. The caller
// holds r.mu.
func (r *runner) offer(ctx context.Context, q projection.Request) error {
	if r.options.Snapshots.Policy == nil {
		return nil
	}
	q.ID = r.options.NewID()
	made, err := r.snapshot(ctx, q)
	if made != "" {
		r.out.put(Chunk{Snapshot: made})
	}
	return err
}

// toolsEnded offers a snapshot when all calls of an answer have a result.
func (t *turn) toolsEnded(ctx context.Context) error {
	if err := t.alive(ctx); err != nil {
		return err
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if err := t.r.offer(ctx, projection.Request{Trigger: projection.ToolIterationEnd, TurnIndex: t.rec.start.Index}); err != nil {
		return t.stopLocked(err)
	}
	return nil
}

// invocationEnded offers a snapshot when the session has nothing more to do, unless the last
// turn failed. A state that the end of the turn has captured gets no second snapshot.
func (r *runner) invocationEnded(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	control, _ := projection.State(r.live, projection.Control())
	if r.last.end.Turn.IsZero() || r.last.err != nil || len(control.Inbox) > 0 {
		return nil
	}
	err := r.offer(ctx, projection.Request{Trigger: projection.InvocationEnd, TurnIndex: r.last.index, IfChanged: true})
	if errors.Is(err, ErrOvertaken) {
		return nil // release ends the claim
	}
	return err
}
