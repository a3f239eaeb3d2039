package projection

import "github.com/convlog/convlog/event"

// Explain describes how a load made a state.
type Explain struct {
	Session string
	// Head is the last event in the state.
	Head event.Head
	// Parts is one entry for each projection of the set.
	Parts []PartExplain
	// Skipped lists the snapshots that could not be used, newest first.
	Skipped []SnapshotProblem
	// Events counts the events that the load read, except those in small gaps of a path, and
	// Bytes the length of their lines and of payloads in blobs. An event that is read twice counts twice.
	Events int64
	Bytes  int64
	// BodyBytes is the number of bytes of snapshot bodies that the load read from
	// blobs.
	BodyBytes int64
}

// PartExplain describes how a load made the state of one projection.
type PartExplain struct {
	Projection string
	Version    int
	Scope      event.Scope
	// From is the snapshot that the state started from. It is zero if there was none.
	From SnapshotRef
	// Folded counts the events that were folded on top of From.
	Folded int64
}

// SnapshotRef refers to a snapshot. The zero SnapshotRef refers to none.
type SnapshotRef struct {
	// Seq is the seq of the snapshot event. Covers is the last event in its state.
	Seq        int64
	Covers     int64
	ID         string
	Projection string
}

// refTo refers to the snapshot of an event.
func refTo(e *event.Event, s *event.Snapshot) SnapshotRef {
	return SnapshotRef{Seq: e.Seq, ID: s.SnapshotID, Projection: s.Projection, Covers: s.Seq}
}

// IsZero reports whether r refers to no snapshot.
func (r SnapshotRef) IsZero() bool { return r == SnapshotRef{} }

func (x *Explain) read(e *event.Event) {
	x.Events++
	x.Bytes += eventBytes(e)
}
