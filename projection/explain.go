package projection

import "github.com/convlog/convlog/event"

// Explain says how a state came about.
type Explain struct {
	Session string
	// Head is the event that the state is as of.
	Head event.Head
	// Parts says for each projection which snapshot it began from.
	Parts []PartExplain
	// Passed are the snapshots that could not be used, newest first.
	Passed []PassedOver
	// Events and Bytes are how many events were read, and the length of their
	// lines with data kept elsewhere; an event that was read twice counts twice.
	Events int64
	Bytes  int64
	// BodyBytes is what was read of snapshots' bodies outside those lines.
	BodyBytes int64
}

// PartExplain says how one projection's state came about.
type PartExplain struct {
	Projection string
	Version    int
	Scope      event.Scope
	// From is the snapshot it began from; zero is the start of the session.
	From SnapshotRef
	// Folded is how many events were folded on top.
	Folded int64
}

// SnapshotRef names a snapshot. The zero SnapshotRef is none.
type SnapshotRef struct {
	// Seq is that of the snapshot event, Covers the last one its state holds.
	Seq        int64
	Covers     int64
	ID         string
	Projection string
}

// IsZero reports whether r names none.
func (r SnapshotRef) IsZero() bool { return r == SnapshotRef{} }

// PassedOver is a snapshot that could not be used.
type PassedOver struct {
	Seq        int64
	ID         string
	Projection string
	// Err matches ErrRedactedBody, ErrOtherVersion, ErrBadDigest,
	// ErrUnreadableBody, ErrCopiedBody, ErrOffPath or ErrOtherPast.
	Err error
}

func (x *Explain) read(e *event.Event) {
	x.Events++
	x.Bytes += eventBytes(e)
}
