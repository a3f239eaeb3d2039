package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

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
	whole   bool   // go on until the newest snapshot of the path is known
	buffer  int    // bytes of tail to keep

	folds []*based
	last  lastSnapshot
	// path are the stretches of the active path that were seen, newest first.
	path []event.Stretch
	walk event.Walk // along the path, newest first
	// at is the seq of the next event to look at.
	at int64
	// waiting are the snapshots of the path that were not looked into, since a
	// fold had one whose path was not known yet.
	waiting []int64

	tail      []event.Event // newest first, unless there were too many
	tailBytes int
	overflow  bool

	explain *Explain
	noted   map[passedFor]bool
}

// passedFor is a snapshot and what is wrong with it.
type passedFor struct {
	seq int64
	why string
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

// run scans down from seq head.
func (s *scan) run(ctx context.Context, head int64) error {
	s.walk.Next, s.at = head, head
	for s.at > 0 && !s.done() {
		if s.sessionDone() {
			s.at = s.walk.Next // what lies between was orphaned
		}
		if err := s.stretch(ctx); err != nil {
			return err
		}
	}
	return s.settle(ctx, true)
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
		if s.done() || s.sessionDone() && s.walk.Next < s.at {
			return nil
		}
	}
	if none {
		return fmt.Errorf("read event %d of session %q: %w", s.at, s.session, eventlog.ErrEventNotFound)
	}
	return nil
}

// look takes in the event at s.at.
func (s *scan) look(ctx context.Context, e *event.Event) error {
	if e.Seq != s.at {
		return &eventlog.CorruptError{Session: s.session, Offset: -1, Seq: s.at, Cause: fmt.Errorf("event %d is in its place", e.Seq)}
	}
	s.explain.read(e)
	s.keep(e)
	onPath, err := s.walk.Step(e)
	if err != nil {
		return err
	}
	if onPath {
		s.step(e)
	}
	s.at = e.Seq - 1
	if e.Type.Name() == event.ProjectionSnapshotted {
		if err := s.snapshot(ctx, e, onPath); err != nil {
			return err
		}
	} else if onPath {
		s.last.count(e)
	}
	return s.settle(ctx, false)
}

// snapshot takes in a snapshot event: its body restores the folds that have
// none yet.
func (s *scan) snapshot(ctx context.Context, e *event.Event, onPath bool) error {
	snap, err := snapshotOf(e)
	if err != nil {
		return s.passOver(e, snap, fmt.Errorf("%w: %w", ErrUnreadableBody, err))
	}
	if onPath {
		s.last.snapshotted(e, snap, s.set)
	}
	if onPath && s.waits() {
		s.waiting = append(s.waiting, e.Seq)
	}
	if !s.wants(onPath) {
		return nil
	}
	return s.offer(ctx, e, snap, onPath)
}

// offer restores the folds that have no snapshot yet from this one.
func (s *scan) offer(ctx context.Context, e *event.Event, snap event.Snapshot, onPath bool) error {
	if e.Redacted() && snap.BodyDigest != "" {
		return s.passOver(e, snap, ErrRedactedBody)
	}
	if snap.IsMark() {
		return nil
	}
	body, err := s.open(ctx, e, &snap)
	if err != nil {
		return s.passOver(e, snap, err)
	}
	usable, err := s.restore(ctx, e, snap, body, onPath)
	if err == nil && usable && onPath && snap.Projection == s.set {
		s.last.bodied(e.Seq, body.size())
	}
	return err
}

// open reads the body of a snapshot that may be used.
func (s *scan) open(ctx context.Context, e *event.Event, snap *event.Snapshot) (body, error) {
	if snap.Seq < 0 || snap.Seq >= e.Seq {
		return nil, fmt.Errorf("%w: event %d covers %d", ErrOffPath, e.Seq, snap.Seq)
	}
	if e.Copied() {
		return nil, ErrCopiedBody
	}
	if err := checkPast(ctx, s.log, s.session, e, snap, s.explain); err != nil {
		return nil, err
	}
	b, read, err := readBody(ctx, s.log, snap)
	s.explain.BodyBytes += read
	return b, err
}

// restore gives the body's parts to the folds that need them. usable is false
// when one of them cannot be used, or a fold of path scope has none.
func (s *scan) restore(ctx context.Context, e *event.Event, snap event.Snapshot, b body, onPath bool) (usable bool, err error) {
	ref := SnapshotRef{Seq: e.Seq, ID: snap.SnapshotID, Projection: snap.Projection, Covers: snap.Seq}
	usable = serves(b, s.folds)
	for _, f := range s.folds {
		if f.found || f.scope() != event.SessionScope && !onPath {
			continue
		}
		ok, read, err := b.restore(ctx, s.log, f)
		s.explain.BodyBytes += read
		if err != nil {
			usable = false
			if err := s.passOver(e, snap, err); err != nil {
				return false, err
			}
			continue
		}
		if ok {
			f.found, f.base, f.from = true, snap.Seq, ref
		}
	}
	return usable, nil
}

// passOver notes a snapshot that cannot be used; other errors are returned.
func (s *scan) passOver(e *event.Event, snap event.Snapshot, err error) error {
	if !passes(err) {
		return fmt.Errorf("snapshot %d of session %q: %w", e.Seq, s.session, err)
	}
	s.pass(PassedOver{Seq: e.Seq, ID: snap.SnapshotID, Projection: snap.Projection, Err: err})
	return nil
}

// pass notes a snapshot once for each thing that is wrong with it.
func (s *scan) pass(p PassedOver) {
	what := passedFor{p.Seq, p.Err.Error()}
	if !s.noted[what] {
		s.noted[what] = true
		s.explain.Passed = append(s.explain.Passed, p)
	}
}

// settle decides on restored states once the scan has come to what they cover.
func (s *scan) settle(ctx context.Context, end bool) error {
	for _, f := range s.folds {
		for f.found && !f.ready && s.reached(f, end) {
			if f.ready = f.scope() == event.SessionScope || s.walk.Next == f.base || s.passed(f.base); f.ready {
				break
			}
			if err := s.another(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// reached reports whether the scan has come to what f's snapshot covers.
func (s *scan) reached(f *based, end bool) bool {
	if f.scope() == event.SessionScope {
		return end || s.at <= f.base
	}
	return s.walk.Next <= f.base
}

// another gives up f's snapshot, which covers another path than the one it
// stands on, and looks for one among those that were seen since.
func (s *scan) another(ctx context.Context, f *based) error {
	off := f.from
	s.pass(PassedOver{Seq: off.Seq, ID: off.ID, Projection: off.Projection, Err: ErrOffPath})
	s.last.unbodied(off.Seq)
	f.reset()
	f.found, f.base, f.from = false, 0, SnapshotRef{}
	for _, seq := range s.waiting {
		if seq >= off.Seq || f.found {
			continue
		}
		e, err := s.log.Event(ctx, s.session, seq)
		if err != nil {
			return err
		}
		s.explain.read(&e)
		snap, err := snapshotOf(&e)
		if err == nil {
			err = s.offer(ctx, &e, snap, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether a fold of path scope has a snapshot whose path is not
// known yet.
func (s *scan) waits() bool {
	for _, f := range s.folds {
		if f.found && !f.ready && f.scope() != event.SessionScope {
			return true
		}
	}
	return false
}

// wants reports whether a fold still looks for a snapshot such as this one.
func (s *scan) wants(onPath bool) bool {
	for _, f := range s.folds {
		if !f.found && (onPath || f.scope() == event.SessionScope) {
			return true
		}
	}
	return false
}

func (s *scan) done() bool { return s.pathDone() && s.sessionDone() }

func (s *scan) pathDone() bool {
	return s.walk.Next == 0 || s.ready(false) && (s.last.found || !s.whole)
}

func (s *scan) sessionDone() bool { return s.ready(true) }

// ready reports whether all folds of session scope, or all others, have their
// snapshot.
func (s *scan) ready(session bool) bool {
	for _, f := range s.folds {
		if !f.ready && (f.scope() == event.SessionScope) == session {
			return false
		}
	}
	return true
}
