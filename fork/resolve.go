package fork

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Resolve finds the event at a point: the last one that a fork there shares.
// The zero Event, of seq 0, is the place before all events. A point that the
// session does not have is ErrPastHead, ErrNoTurn, ErrNoSnapshot or
// eventlog.ErrEventNotFound; a missing session eventlog.ErrNotFound.
//
// The head, seqs and events near the head are found without reading the rest.
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
		for e, err := range log.Read(ctx, session, eventlog.All().Backward().Bare()) {
			if err != nil {
				return e, err
			}
			if e.ID == p.event {
				return log.Event(ctx, session, e.Seq)
			}
		}
		return event.Event{}, eventlog.ErrEventNotFound
	case atTurn:
		return turnEnd(ctx, log, session, p.seq)
	case beforeTurn:
		return turnStart(ctx, log, session, p.seq)
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
		return event.Event{}, fmt.Errorf("%w: %w", ErrPastHead, eventlog.ErrEventNotFound)
	}
	return e, err
}

// snapshotEnd finds a snapshot and gives the last event of its append.
func snapshotEnd(ctx context.Context, log *eventlog.Log, session, id string) (event.Event, error) {
	events := log.Read(ctx, session, eventlog.All().Backward().Bare())
	for e, err := range filled(ctx, log, session, events, event.ProjectionSnapshotted) {
		if err != nil {
			return event.Event{}, err
		}
		if e.Type.Name() != event.ProjectionSnapshotted {
			continue
		}
		var snapshot struct {
			ID string `json:"snapshot_id"`
		}
		if err := decodeStructure(&e, &snapshot); err != nil {
			return event.Event{}, err
		}
		if snapshot.ID == id {
			return appendEnd(ctx, log, session, e)
		}
	}
	return event.Event{}, ErrNoSnapshot
}

// appendEnd is the last event of the append that holds e.
func appendEnd(ctx context.Context, log *eventlog.Log, session string, e event.Event) (event.Event, error) {
	if e.More() == 0 {
		return e, nil
	}
	return log.Event(ctx, session, e.Seq+int64(e.More()))
}
