package projection

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Snapshotted is a snapshot event and its payload.
type Snapshotted struct {
	Event    event.Event
	Snapshot event.Snapshot
	// Orphaned reports that the snapshot is not on the active path.
	Orphaned bool
}

// Snapshots yields the snapshots of a session's lineage, newest first. With orphaned
// it also yields the snapshots that are not on the active path. A redacted snapshot
// has no body; see Event.Redacted. Stores of SQLite and PostgreSQL read the snapshots by an index.
func Snapshots(ctx context.Context, log *eventlog.Log, session string, orphaned bool) iter.Seq2[Snapshotted, error] {
	return func(yield func(Snapshotted, error) bool) {
		next := int64(math.MaxInt64) // the events of the active path have this seq or a lower one
		for e, err := range engine.Of(log).Snapshots(ctx, session) {
			onPath := e.Seq <= next
			if err == nil && onPath {
				next, err = e.Parent()
			}
			if err != nil {
				yield(Snapshotted{}, err)
				return
			}
			if e.Type.Name() != event.ProjectionSnapshotted || !onPath && !orphaned {
				continue
			}
			s, err := snapshotOf(&e)
			if !yield(Snapshotted{Event: e, Snapshot: s, Orphaned: !onPath}, err) || err != nil {
				return
			}
		}
	}
}

// snapshotOf decodes a snapshot event. Of a redacted event it decodes the members
// that redaction keeps.
func snapshotOf(e *event.Event) (s event.Snapshot, err error) {
	if e.Redacted() {
		if s, err = event.DecodeKept[event.Snapshot](e); err != nil {
			err = fmt.Errorf("%s %d of %q: %w", e.Type, e.Seq, e.SessionID, err)
		}
		return s, err
	}
	s, _, err = event.Decode[event.Snapshot](e)
	return s, err
}

// Find returns the newest snapshot with the snapshot id or the state digest, from any path
// of the session's lineage. It prefers the active path. The error is ErrSnapshotNotFound if
// there is none.
func Find(ctx context.Context, log *eventlog.Log, session, id string) (Snapshotted, error) {
	var orphan Snapshotted
	for s, err := range Snapshots(ctx, log, session, true) {
		switch {
		case err != nil:
			return Snapshotted{}, err
		case s.Snapshot.SnapshotID != id && string(s.Snapshot.StateDigest) != id:
		case !s.Orphaned:
			return s, nil
		case orphan.Event.Seq == 0:
			orphan = s
		}
	}
	if orphan.Event.Seq == 0 {
		return orphan, fmt.Errorf("%w: %q in session %q", ErrSnapshotNotFound, id, session)
	}
	return orphan, nil
}
