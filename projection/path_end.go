package projection

import (
	"time"

	"github.com/convlog/convlog/event"
)

// pathEnd describes the newest snapshot on the path and the events after it. A
// Live needs it to decide about the next snapshot.
type pathEnd struct {
	// snapshot is the newest snapshot, with a body or without, and time is the time of
	// its event.
	snapshot event.Snapshot
	time     time.Time
	found    bool
	// digest is the state digest of the set's newest snapshot, and previous the seq of the
	// snapshot, 0 if there is none.
	digest   event.Digest
	previous int64
	// events counts the path's events after the newest snapshot. seen is the bytes of
	// all events of the path that were read. Neither counts snapshots.
	events int
	seen   int64
	// body is the seq of the set's newest usable body, and bodyBytes the size of its
	// states. since is the bytes of the path's events after body.
	body      int64
	bodyBytes int64
	since     int64
	oldest    time.Time // the time of the oldest event of the path that was read
}

// addEvent counts an event of the path that is no snapshot. The newest event comes
// first.
func (l *pathEnd) addEvent(e *event.Event) {
	l.seen += eventBytes(e)
	if l.body == 0 {
		l.since = l.seen
	}
	if !l.found {
		l.events++
	}
}

// addSnapshot notes a snapshot of the path. The newest snapshot comes first.
func (l *pathEnd) addSnapshot(e *event.Event, snap event.Snapshot, set string) {
	if !l.found {
		l.snapshot, l.time, l.found = snap, e.Timestamp, true
	}
	if l.digest == "" && snap.Projection == set {
		l.digest, l.previous = snap.StateDigest, e.Seq
	}
}

// addBody notes a usable body of the set. The newest body comes first.
func (l *pathEnd) addBody(seq, size int64) {
	if l.body == 0 {
		l.body, l.bodyBytes, l.since = seq, size, l.seen
	}
}

// dropBody reverses addBody for a body that is not usable after all.
func (l *pathEnd) dropBody(seq int64) {
	if l.body == seq {
		l.body, l.bodyBytes, l.since = 0, 0, l.seen
	}
}

// eventBytes is the size of an event: its line, and its payload if a blob holds it.
func eventBytes(e *event.Event) int64 {
	_, spilled, _ := e.Spilled()
	return int64(len(e.Line())) + 1 + spilled
}
