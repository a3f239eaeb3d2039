package projection

import "github.com/convlog/convlog/event"

// lastSnapshot is the newest snapshot on the path, with a body or without, and
// what came after it and after the newest body of the set.
type lastSnapshot struct {
	event    event.Event
	snapshot event.Snapshot
	found    bool
	// digest is the content of the set's newest snapshot.
	digest event.Digest
	// events is what the path has after the newest snapshot, seen the bytes of all
	// events of the path that were read, without snapshots.
	events int
	seen   int64
	// body is the set's newest usable body, bodyBytes its size, and since what of
	// seen came after it.
	body      int64
	bodyBytes int64
	since     int64
	oldest    event.Event // of the path, as far as was read
}

// count adds an event of the path that is no snapshot.
func (l *lastSnapshot) count(e *event.Event) {
	l.seen += eventBytes(e)
	if l.body == 0 {
		l.since = l.seen
	}
	if !l.found {
		l.events++
	}
}

// snapshotted takes in a snapshot of the path; the newest comes first.
func (l *lastSnapshot) snapshotted(e *event.Event, snap event.Snapshot, set string) {
	if !l.found {
		l.event, l.snapshot, l.found = *e, snap, true
	}
	if l.digest == "" && snap.Projection == set {
		l.digest = snap.StateDigest
	}
}

// bodied takes in a usable body of the set.
func (l *lastSnapshot) bodied(seq, size int64) {
	if l.body == 0 {
		l.body, l.bodyBytes, l.since = seq, size, l.seen
	}
}

// unbodied takes back a body that proved of no use.
func (l *lastSnapshot) unbodied(seq int64) {
	if l.body == seq {
		l.body, l.bodyBytes, l.since = 0, 0, l.seen
	}
}

// eventBytes is what an event weighs: its line, and the data kept elsewhere.
func eventBytes(e *event.Event) int64 {
	_, spilled, _ := e.Spilled()
	return int64(len(e.Line())) + 1 + spilled
}
