package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/backward"
)

// snapshotChoice chooses the snapshots that a load starts from. It reads the lineage
// backwards from the head and stops when each fold has its snapshot:
//
//   - A fold of path scope starts from the newest usable snapshot on the active path.
//   - A fold of session scope starts from the newest usable snapshot of the lineage;
//     the snapshot may be on an orphaned branch.
//   - A fold without a usable snapshot starts empty. The choice then reads back to
//     event 1.
//
// A snapshot is usable if tryRestore accepts it: its body is intact, it has the
// version of the fold, and the events that it covers are still the stored events. A
// fold of path scope also needs the last covered event on the active path; confirm
// checks this when the walk along the path arrives there. An unusable snapshot is
// skipped, with its reason in Explain.Skipped, and the next older one is tried.
//
// The events between the snapshots and the head are the tail. The load folds them
// after the choice; see snapshot_tail.go.
type snapshotChoice struct {
	log     *eventlog.Log
	session string
	set     string // the name of the set's own snapshots
	newest  bool   // read until the newest snapshot of the path is known

	folds []*loadFold
	last  pathEnd
	tail  tail
	walk  backward.Walk // along the active path, newest first
	next  int64         // the seq of the next event to read
	// deferred are the snapshots of the path that were read while a fold had an
	// unconfirmed snapshot, newest first.
	deferred []int64

	explain  *Explain
	reported map[skipReason]bool
}

// loadFold is a fold and the snapshot that its state starts from.
type loadFold struct {
	fold
	// restored reports that the state is the state of snapshot from. confirmed
	// reports that the snapshot may stay: the walk arrived at event covers.
	restored, confirmed bool
	covers              int64 // the last event in the state
	from                SnapshotRef
}

// skipReason is a snapshot and the reason why it is skipped.
type skipReason struct {
	seq  int64
	text string
}

// run chooses the snapshots for a state as of seq head.
func (s *snapshotChoice) run(ctx context.Context, head int64) error {
	s.walk.Next, s.next = head, head
	for s.next > 0 && !s.done() {
		if s.sessionDone() {
			s.next = s.walk.Next // jump over orphaned events: only the path is needed now
		}
		if err := s.readBack(ctx); err != nil {
			return err
		}
	}
	return s.confirm(ctx, true)
}

// readBack visits events from s.next backwards. It returns when the choice is done,
// where the path jumps over events that no fold needs, and when the tail stops to keep
// the events.
func (s *snapshotChoice) readBack(ctx context.Context) error {
	empty, kept := true, !s.tail.overflow
	events := eventlog.Between(0, s.next).Backward()
	if !kept {
		events = events.Transient()
	}
	for e, err := range s.log.Read(ctx, s.session, events) {
		if err != nil {
			return err
		}
		empty = false
		if err := s.visit(ctx, &e); err != nil {
			return err
		}
		if s.done() || s.sessionDone() && s.walk.Next < s.next || kept && s.tail.overflow {
			return nil
		}
	}
	if empty {
		return fmt.Errorf("read event %d of session %q: %w", s.next, s.session, eventlog.ErrEventNotFound)
	}
	return nil
}

// visit adds event s.next to the tail and, if it is a snapshot, tries to start the
// folds from it.
func (s *snapshotChoice) visit(ctx context.Context, e *event.Event) error {
	if e.Seq != s.next {
		return &eventlog.CorruptError{Session: s.session, Offset: -1, Seq: s.next, Cause: fmt.Errorf("event %d is in its place", e.Seq)}
	}
	s.explain.read(e)
	s.tail.add(e)
	onPath, err := s.walk.Step(e)
	if err != nil {
		return err
	}
	if onPath {
		s.tail.addToPath(e.Seq)
		s.last.oldest = e.Timestamp
	}
	s.next = e.Seq - 1
	if e.Type.Name() == event.ProjectionSnapshotted {
		if err := s.visitSnapshot(ctx, e, onPath); err != nil {
			return err
		}
	} else if onPath {
		s.last.addEvent(e)
	}
	return s.confirm(ctx, false)
}

// visitSnapshot tries a snapshot if a fold still needs one.
func (s *snapshotChoice) visitSnapshot(ctx context.Context, e *event.Event, onPath bool) error {
	snap, err := snapshotOf(e)
	if err != nil {
		return s.skip(e, snap, fmt.Errorf("%w: %w", unreadable, err))
	}
	if onPath {
		s.last.addSnapshot(e, snap, s.set)
	}
	if onPath && s.unconfirmed() {
		s.deferred = append(s.deferred, e.Seq)
	}
	if !s.needs(onPath) {
		return nil
	}
	return s.tryRestore(ctx, e, snap, onPath)
}

// tryRestore starts the folds that need a snapshot from this one, or skips it with a
// reason. A snapshot without a body (a mark) is ignored.
func (s *snapshotChoice) tryRestore(ctx context.Context, e *event.Event, snap event.Snapshot, onPath bool) error {
	if e.Redacted() {
		return s.skip(e, snap, redactedSnapshot)
	}
	if snap.IsMark() {
		return nil
	}
	body, err := s.usableBody(ctx, e, &snap)
	if err != nil {
		return s.skip(e, snap, err)
	}
	complete, err := s.choose(ctx, e, snap, body, onPath)
	if err == nil && complete && onPath && snap.Projection == s.set {
		s.last.addBody(e.Seq, body.size())
	}
	return err
}

// usableBody reads the body of a snapshot. The error is the reason to skip the
// snapshot, or a failed read.
func (s *snapshotChoice) usableBody(ctx context.Context, e *event.Event, snap *event.Snapshot) (body, error) {
	if snap.Seq < 0 || snap.Seq >= e.Seq {
		return nil, fmt.Errorf("%w: event %d covers %d", offPath, e.Seq, snap.Seq)
	}
	if e.Copied() {
		return nil, copiedSnapshot
	}
	if err := checkCovered(ctx, s.log, s.session, e, snap, s.explain); err != nil {
		return nil, err
	}
	b, read, err := readBody(ctx, s.log, snap)
	s.explain.BodyBytes += read
	return b, err
}

// choose sets the states of the folds that need a snapshot. complete is true if the
// body has a usable part for each fold of path scope, and no part fails.
func (s *snapshotChoice) choose(ctx context.Context, e *event.Event, snap event.Snapshot, b body, onPath bool) (complete bool, err error) {
	ref := refTo(e, &snap)
	complete = hasPathParts(b, s.folds)
	for _, f := range s.folds {
		if f.restored || f.scope() != event.SessionScope && !onPath {
			continue
		}
		ok, read, err := b.restore(ctx, s.log, f)
		s.explain.BodyBytes += read
		if err != nil {
			complete = false
			if err := s.skip(e, snap, err); err != nil {
				return false, err
			}
			continue
		}
		if ok {
			f.restored, f.covers, f.from = true, snap.Seq, ref
		}
	}
	return complete, nil
}

// confirm keeps the snapshots whose last covered event the walk has reached, and
// replaces the others. end is true after the last event.
func (s *snapshotChoice) confirm(ctx context.Context, end bool) error {
	for _, f := range s.folds {
		for f.restored && !f.confirmed && s.reached(f, end) {
			if f.confirmed = f.scope() == event.SessionScope || s.walk.Next == f.covers || s.tail.hasOnPath(f.covers); f.confirmed {
				break
			}
			if err := s.replace(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// reached reports whether the choice has read back to the event that f's snapshot
// covers.
func (s *snapshotChoice) reached(f *loadFold, end bool) bool {
	if f.scope() == event.SessionScope {
		return end || s.next <= f.covers
	}
	return s.walk.Next <= f.covers
}

// replace skips f's snapshot, because it covers another path, and tries the deferred
// snapshots that are older.
func (s *snapshotChoice) replace(ctx context.Context, f *loadFold) error {
	old := f.from
	p, _ := problemOf(old, offPath)
	s.report(p)
	s.last.dropBody(old.Seq)
	f.reset()
	f.restored, f.covers, f.from = false, 0, SnapshotRef{}
	for _, seq := range s.deferred {
		if seq >= old.Seq || f.restored {
			continue
		}
		e, err := s.log.Event(ctx, s.session, seq)
		if err != nil {
			return err
		}
		s.explain.read(&e)
		snap, err := snapshotOf(&e)
		if err == nil {
			err = s.tryRestore(ctx, &e, snap, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skip reports a snapshot that cannot be used. It returns an error that is no reason
// to skip a snapshot, for example a failed read.
func (s *snapshotChoice) skip(e *event.Event, snap event.Snapshot, err error) error {
	p, ok := problemOf(refTo(e, &snap), err)
	if !ok {
		return fmt.Errorf("snapshot %d of session %q: %w", e.Seq, s.session, err)
	}
	s.report(p)
	return nil
}

// report adds a skipped snapshot to the explanation, once for each reason.
func (s *snapshotChoice) report(p SnapshotProblem) {
	p.Session = s.session
	reason := skipReason{p.Snapshot.Seq, p.Err.Error()}
	if !s.reported[reason] {
		s.reported[reason] = true
		s.explain.Skipped = append(s.explain.Skipped, p)
	}
}

// unconfirmed reports whether a fold of path scope has a snapshot that is not
// confirmed yet.
func (s *snapshotChoice) unconfirmed() bool {
	for _, f := range s.folds {
		if f.restored && !f.confirmed && f.scope() != event.SessionScope {
			return true
		}
	}
	return false
}

// needs reports whether a fold needs a snapshot from the path, or from a branch.
func (s *snapshotChoice) needs(onPath bool) bool {
	for _, f := range s.folds {
		if !f.restored && (onPath || f.scope() == event.SessionScope) {
			return true
		}
	}
	return false
}

func (s *snapshotChoice) done() bool { return s.pathDone() && s.sessionDone() }

func (s *snapshotChoice) pathDone() bool {
	return s.walk.Next == 0 || s.confirmed(false) && (s.last.found || !s.newest)
}

func (s *snapshotChoice) sessionDone() bool { return s.confirmed(true) }

// confirmed reports whether all folds of session scope, or of path scope, have a
// confirmed snapshot.
func (s *snapshotChoice) confirmed(session bool) bool {
	for _, f := range s.folds {
		if !f.confirmed && (f.scope() == event.SessionScope) == session {
			return false
		}
	}
	return true
}
