package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Resolve finds the event at a point: the newest one that a fork at the point
// shares. The zero Event, with seq 0, is the empty start. A point that the session
// does not have is "past_head", "no_turn", "no_snapshot" or
// eventlog.ErrEventNotFound. A missing session is eventlog.ErrNotFound.
//
// It reads backward and stops at the point: the head and events near it cost the
// same in a session of any length.
func Resolve(ctx context.Context, log *eventlog.Log, session string, p Point) (event.Event, error) {
	e, err := resolve(ctx, log, session, p)
	if err != nil {
		return event.Event{}, fmt.Errorf("%v of session %q: %w", p, session, err)
	}
	return e, nil
}

func resolve(ctx context.Context, log *eventlog.Log, session string, p Point) (event.Event, error) {
	switch p.kind {
	case atSeq:
		return eventAt(ctx, log, session, p.seq)
	case atEvent:
		return eventWithID(ctx, log, session, p)
	case atTurn:
		return turnEnd(ctx, log, session, p.seq)
	case beforeTurn:
		return beforeTurnStart(ctx, log, session, p.seq)
	case atSnapshot:
		return snapshotEnd(ctx, log, session, p.snapshot)
	default:
		return newest(ctx, log, session)
	}
}

func newest(ctx context.Context, log *eventlog.Log, session string) (event.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.Last(1)) {
		return e, err
	}
	return event.Event{}, eventlog.ErrNotFound
}

func eventAt(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	if seq == 0 {
		_, err := log.Head(ctx, session)
		return event.Event{}, err
	}
	e, err := log.Event(ctx, session, seq)
	if errors.Is(err, eventlog.ErrEventNotFound) && seq > 0 {
		return event.Event{}, fmt.Errorf("%w: %w", errPastHead, eventlog.ErrEventNotFound)
	}
	return e, err
}

func eventWithID(ctx context.Context, log *eventlog.Log, session string, p Point) (event.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.All().Backward().Bare()) {
		if err != nil {
			return event.Event{}, err
		}
		if e.ID == p.event {
			return log.Event(ctx, session, e.Seq)
		}
	}
	return event.Event{}, eventlog.ErrEventNotFound
}

// snapshotEnd is the last event of the append that holds a snapshot.
func snapshotEnd(ctx context.Context, log *eventlog.Log, session, id string) (event.Event, error) {
	for e, err := range engine.Of(log).Snapshots(ctx, session) {
		if err != nil {
			return event.Event{}, err
		}
		if e.Type.Name() != event.ProjectionSnapshotted {
			continue
		}
		snapshot, err := event.DecodeKept[struct {
			ID string `json:"snapshot_id"`
		}](&e)
		if err != nil {
			return event.Event{}, err
		}
		if snapshot.ID == id {
			return appendEnd(ctx, log, session, e)
		}
	}
	return event.Event{}, errNoSnapshot
}

// appendEnd is the last event of the append that holds e.
func appendEnd(ctx context.Context, log *eventlog.Log, session string, e event.Event) (event.Event, error) {
	if e.More() == 0 {
		return e, nil
	}
	return log.Event(ctx, session, e.Seq+int64(e.More()))
}
