package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// tailBuffer is how many bytes of events a scan keeps for the folding that
// follows it; beyond that they are read again.
const tailBuffer = 8 << 20

// scan reads a lineage backwards, from a head to the newest usable snapshot of
// every fold, and notes which events are to be folded on top of them.
//
// The folds of path scope need a snapshot on the active path and the path's
// events behind it; those of session scope the newest snapshot anywhere, and
// all events behind it by seq.
type scan struct {
	log     *eventlog.Log
	session string
	set     string // the name of the set's own snapshots
	replay  bool   // pass over every snapshot
	buffer  int    // bytes of tail to keep

	folds []*based
	last  lastSnapshot
	// path are the stretches of the active path that were seen, newest first.
	path []eventlog.Stretch
	// pathAt is the seq of the next event of the path; 0 at its start.
	pathAt int64
	// at is the seq of the next event to look at.
	at int64

	tail      []eventlog.Event // newest first, unless there were too many
	tailBytes int
	overflow  bool

	explain *Explain
}

// based is a fold and the snapshot it begins from.
type based struct {
	fold
	// found says that a snapshot was restored; it counts once the scan has
	// reached what it covers.
	found bool
	ready bool
	base  int64 // the last seq that the state holds
	from  SnapshotRef
}

// lastSnapshot is the newest snapshot on the path, with a body or without, and
// what came after it and after the newest body of the set.
type lastSnapshot struct {
	event    eventlog.Event
	snapshot eventlog.Snapshot
	found    bool
	// bodyBytes is the size of the set's newest body, since and events what was
	// appended to the path after that body and after the newest snapshot.
	hasBody   bool
	bodyBytes int64
	since     int64
	events    int
	oldest    eventlog.Event // of the path, as far as was read
}

// run scans down from seq head.
func (s *scan) run(ctx context.Context, head int64) error {
	s.pathAt, s.at = head, head
	for s.at > 0 && !s.done() {
		if s.sessionDone() {
			s.at = s.pathAt // what lies between was orphaned
		}
		if err := s.stretch(ctx); err != nil {
			return err
		}
	}
	for _, f := range s.folds {
		s.settle(f, true)
	}
	return nil
}

// stretch reads on from s.at until everything is found, or the path turns away
// from events that nobody needs.
func (s *scan) stretch(ctx context.Context) error {
	none := true
	for e, err := range s.log.Read(ctx, s.session, eventlog.Between(0, s.at).Backward()) {
		if err != nil {
			return err
		}
		none = false
		if err := s.look(ctx, &e); err != nil {
			return err
		}
		if s.done() || s.sessionDone() && s.pathAt < s.at {
			return nil
		}
	}
	if none {
		return fmt.Errorf("read event %d of session %q: %w", s.at, s.session, eventlog.ErrEventNotFound)
	}
	return nil
}

// look takes in the event at s.at.
func (s *scan) look(ctx context.Context, e *eventlog.Event) error {
	s.explain.read(e)
	s.keep(e)
	onPath := e.Seq == s.pathAt
	if onPath {
		if err := s.step(e); err != nil {
			return err
		}
	}
	s.at = e.Seq - 1
	if e.Type.Name() == eventlog.ProjectionSnapshotted {
		if err := s.snapshot(ctx, e, onPath); err != nil {
			return err
		}
	} else if onPath {
		s.last.count(e)
	}
	for _, f := range s.folds {
		s.settle(f, false)
	}
	return nil
}

// step moves along the path.
func (s *scan) step(e *eventlog.Event) error {
	if n := len(s.path); n > 0 && s.path[n-1].From == e.Seq+1 {
		s.path[n-1].From = e.Seq
	} else {
		s.path = append(s.path, eventlog.Stretch{From: e.Seq, To: e.Seq})
	}
	s.last.oldest = *e
	s.pathAt = e.Seq - 1
	if e.Type.Name() != eventlog.HeadMoved {
		return nil
	}
	m, _, err := e.HeadMove()
	if err != nil {
		return err
	}
	if m.To >= e.Seq {
		return &eventlog.CorruptError{Session: s.session, Offset: -1, Seq: e.Seq, Cause: fmt.Errorf("head_moved to %d", m.To)}
	}
	s.pathAt = m.To
	return nil
}

// keep holds on to the event for the folding, while there are few.
func (s *scan) keep(e *eventlog.Event) {
	if s.overflow {
		return
	}
	s.tailBytes += len(e.Line()) + len(e.Data)
	if s.tailBytes > s.buffer {
		s.tail, s.overflow = nil, true
		return
	}
	s.tail = append(s.tail, *e)
}

// snapshot takes in a snapshot event: its body restores the folds that have
// none yet.
func (s *scan) snapshot(ctx context.Context, e *eventlog.Event, onPath bool) error {
	snap, err := snapshotOf(e)
	if err != nil {
		s.explain.pass(e, snap, fmt.Errorf("%w: %w", ErrUnreadableBody, err))
		return nil
	}
	if onPath && !s.last.found {
		s.last.event, s.last.snapshot, s.last.found = *e, snap, true
	}
	if s.replay || !s.wants(onPath) {
		return nil
	}
	if e.Redacted() && snap.BodyDigest != "" {
		s.explain.pass(e, snap, ErrRedactedBody)
	}
	if snap.IsMark() {
		return nil
	}
	body, err := readBody(ctx, s.log, &snap)
	if err == nil && snap.Seq >= e.Seq {
		err = ErrOffPath
	}
	if err != nil {
		return s.passOver(e, snap, err)
	}
	s.explain.BodyBytes += int64(snap.Body.Bytes)
	if onPath && snap.Projection == s.set && !s.last.hasBody {
		s.last.hasBody, s.last.bodyBytes = true, body.size()
	}
	ref := SnapshotRef{Seq: e.Seq, ID: snap.SnapshotID, Projection: snap.Projection, Covers: snap.Seq}
	return s.restore(ctx, e, snap, body, ref, onPath)
}

// restore gives the body's parts to the folds that need them.
func (s *scan) restore(ctx context.Context, e *eventlog.Event, snap eventlog.Snapshot, b body, ref SnapshotRef, onPath bool) error {
	for _, f := range s.folds {
		if f.found || f.scope() != eventlog.SessionScope && !onPath {
			continue
		}
		ok, read, err := b.restore(ctx, s.log, f)
		s.explain.BodyBytes += read
		if err != nil {
			if err := s.passOver(e, snap, err); err != nil {
				return err
			}
			continue
		}
		if ok {
			f.found, f.base, f.from = true, snap.Seq, ref
		}
	}
	return nil
}

// passOver notes a snapshot that cannot be used; other errors are returned.
func (s *scan) passOver(e *eventlog.Event, snap eventlog.Snapshot, err error) error {
	if !passes(err) {
		return fmt.Errorf("snapshot %d of session %q: %w", e.Seq, s.session, err)
	}
	s.explain.pass(e, snap, err)
	return nil
}

// settle decides on a restored state once the scan has come to what it covers:
// on another path than the one it stands on, the search goes on.
func (s *scan) settle(f *based, end bool) {
	if !f.found || f.ready {
		return
	}
	if f.scope() == eventlog.SessionScope {
		f.ready = s.at <= f.base || end
		return
	}
	switch {
	case s.pathAt == f.base:
		f.ready = true
	case s.pathAt < f.base:
		s.explain.passed(PassedOver{Seq: f.from.Seq, ID: f.from.ID, Projection: f.from.Projection, Err: ErrOffPath})
		f.reset()
		f.found, f.base, f.from = false, 0, SnapshotRef{}
	}
}

// wants reports whether a fold still looks for a snapshot such as this one.
func (s *scan) wants(onPath bool) bool {
	for _, f := range s.folds {
		if !f.found && (onPath || f.scope() == eventlog.SessionScope) {
			return true
		}
	}
	return false
}

func (s *scan) done() bool { return s.pathDone() && s.sessionDone() }

func (s *scan) pathDone() bool { return s.pathAt == 0 || s.ready(false) }

func (s *scan) sessionDone() bool { return s.ready(true) }

// ready reports whether all folds of session scope, or all others, have their
// snapshot.
func (s *scan) ready(session bool) bool {
	for _, f := range s.folds {
		if !f.ready && (f.scope() == eventlog.SessionScope) == session {
			return false
		}
	}
	return true
}

// count adds an event of the path that is no snapshot to what came after the
// newest ones.
func (l *lastSnapshot) count(e *eventlog.Event) {
	if !l.hasBody {
		l.since += eventBytes(e)
	}
	if !l.found {
		l.events++
	}
}

// eventBytes is what an event weighs: its line, and the data kept elsewhere.
func eventBytes(e *eventlog.Event) int64 {
	_, spilled, _ := e.Spilled()
	return int64(len(e.Line())) + 1 + spilled
}

// lowest is the seq after which all events are needed that a fold of session
// scope, or of another, folds. ok is false when there is no such fold.
func (s *scan) lowest(session bool) (seq int64, ok bool) {
	for _, f := range s.folds {
		if (f.scope() == eventlog.SessionScope) == session {
			if !ok || f.base < seq {
				seq = f.base
			}
			ok = true
		}
	}
	return seq, ok
}

// onPath reports whether seq is on the part of the path that was seen. Calls
// come in ascending order of seq.
func (s *scan) onPath(seq int64) bool {
	for n := len(s.path); n > 0; n-- {
		switch p := s.path[n-1]; {
		case seq > p.To:
			s.path = s.path[:n-1]
		default:
			return seq >= p.From
		}
	}
	return false
}

// ranges are the seqs to fold, oldest first, each event once.
func (s *scan) ranges(head int64) (r []eventlog.Stretch) {
	add := func(from, to int64) {
		if from > to {
			return
		}
		if n := len(r); n > 0 && from <= r[n-1].To+1 {
			r[n-1].To = max(r[n-1].To, to)
			return
		}
		r = append(r, eventlog.Stretch{From: from, To: to})
	}
	path, hasPath := s.lowest(false)
	all, hasAll := s.lowest(true)
	if !hasAll {
		all = head
	}
	if hasPath {
		for n := len(s.path); n > 0; n-- {
			p := s.path[n-1]
			add(max(p.From, path+1), min(p.To, all))
		}
	}
	add(all+1, head)
	return r
}
