package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Why a snapshot is contradicted by a replay; matched by SnapshotFinding.Err.
var (
	// ErrOtherState: the state of one of its projections is not that of a replay.
	ErrOtherState = errors.New("state is not that of a replay")
	// ErrOtherDigest: its state_digest is not that of a replay.
	ErrOtherDigest = errors.New("state digest is not that of a replay")
)

// SnapshotReport is what VerifySnapshots found in one session.
type SnapshotReport struct {
	// Snapshots counts the session's own; those in what a fork shares with its
	// parent are the parent's.
	Snapshots int64
	// Checked counts what was compared with a replay: the states in bodies, and
	// the marks.
	Checked  int64
	Skipped  SkippedStates
	Findings []SnapshotFinding
}

// SkippedStates counts what was not compared with a replay: states in bodies,
// and marks; where a body was not opened, it counts once.
type SkippedStates struct {
	// Unknown are of projections that nobody named, OtherVersion of another
	// version than is known.
	Unknown, OtherVersion int64
	// Redacted are bodies that were, and marks of what was erased since; Copied
	// came with their session from another.
	Redacted, Copied int64
	// OtherPast are of other events than stand before them now, as after a repair,
	// or do not say of which; Unfolded cover events that cannot be folded.
	OtherEvents, Unfolded int64
}

// Total is the sum of them all.
func (s SkippedStates) Total() int64 {
	return s.Unknown + s.OtherVersion + s.Redacted + s.Copied + s.OtherEvents + s.Unfolded
}

// SnapshotFinding is a snapshot that a replay contradicts, or of which nobody can
// say what it holds.
type SnapshotFinding struct {
	Session  string
	Snapshot SnapshotRef
	// Part is the projection in the body that Err is about; empty if it is about
	// the whole.
	Part string
	// Mark says that the snapshot has no body, so that no state comes of it. It may
	// also be of other versions of the projections in a set, which a mark does not
	// tell.
	Mark bool
	// Err matches ErrOtherState, ErrOtherDigest, ErrBadDigest, ErrUnreadableBody
	// or ErrOffPath.
	Err error
}

// VerifySnapshots compares a session's own snapshots with a replay, those on
// orphaned branches included. It knows Session, the projections of this package,
// and the sets given besides. What a replay contradicts is reported; the error is
// for a missing session, an invalid set, and for what kept it from looking, as a
// damaged lineage is a *eventlog.CorruptError.
//
// It reads the session's own events, and goes on only if they have snapshots to
// compare: then it folds the lineage once, up to the last event that one of them
// covers. The states at places that the path went back to are kept in memory until
// it does.
func VerifySnapshots(ctx context.Context, log *eventlog.Log, session string, sets ...Set) (SnapshotReport, error) {
	for _, set := range sets {
		if err := set.check(); err != nil {
			return SnapshotReport{}, fmt.Errorf("verify snapshots: %w", err)
		}
	}
	const tries = 4
	for try := 1; ; try++ {
		head, err := log.Head(ctx, session)
		if err != nil {
			return SnapshotReport{}, fmt.Errorf("verify snapshots: %w", err)
		}
		v := newSnapshotVerifier(log, session, sets)
		if err := v.run(ctx, head.Seq); err != nil {
			return SnapshotReport{}, fmt.Errorf("verify snapshots of session %q: %w", session, err)
		}
		// A redaction meanwhile may have looked like a contradiction.
		if len(v.report.Findings) == 0 || try == tries {
			return v.report, nil
		}
		if now, err := log.Head(ctx, session); err != nil || now == head {
			return v.report, err
		}
	}
}

// snapshotVerifier verifies the snapshots of one session.
type snapshotVerifier struct {
	log     *eventlog.Log
	session string
	sets    map[string]Set  // by their names
	parts   map[string]Part // of all sets
	report  SnapshotReport

	first    int64 // the seq of the session's first own event
	paths    neededPaths
	suspects []suspect
	erased   int64 // the first event that was redacted

	states []*tracked
	// kept says for seqs how each state of path scope comes back there; nil where
	// there is none.
	kept map[int64][]func() error
	seq  int64 // up to which was folded
}

// suspect is a snapshot, and what of it is to be compared with a replay.
type suspect struct {
	ref    SnapshotRef
	mark   bool
	parts  []string     // projections, sorted
	digest event.Digest // empty if it is not to be compared
}

// weight is what the suspect counts for.
func (s *suspect) weight() int64 {
	if s.mark {
		return 1
	}
	return int64(len(s.parts))
}

func newSnapshotVerifier(log *eventlog.Log, session string, sets []Set) *snapshotVerifier {
	v := &snapshotVerifier{log: log, session: session, sets: map[string]Set{}, parts: map[string]Part{}, kept: map[int64][]func() error{}}
	for _, p := range builtin() {
		v.knows(Of("", p))
	}
	v.knows(Session())
	for _, set := range sets {
		v.knows(set)
	}
	return v
}

func (v *snapshotVerifier) knows(set Set) {
	v.sets[set.name()] = set
	for _, p := range set.Parts {
		v.parts[p.ProjectionName()] = p
	}
}

func (v *snapshotVerifier) run(ctx context.Context, head int64) error {
	if err := v.list(ctx, head); err != nil || len(v.suspects) == 0 {
		return err
	}
	if err := v.prefix(ctx); err != nil {
		return err
	}
	v.choose()
	if len(v.suspects) == 0 {
		return nil
	}
	return v.replay(ctx)
}

// list looks for snapshots among the session's own events.
func (v *snapshotVerifier) list(ctx context.Context, head int64) error {
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(0, head).Own().Bare()) {
		if err != nil {
			return err
		}
		if v.first == 0 {
			v.first = e.Seq
		}
		if err := v.note(&e); err != nil {
			return err
		}
		if e.Type.Name() != event.ProjectionSnapshotted {
			continue
		}
		if err := v.snapshot(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// prefix notes the shape of what a fork shares with its parents.
func (v *snapshotVerifier) prefix(ctx context.Context) error {
	if v.first <= 1 {
		return nil
	}
	own := v.paths.tree
	v.paths.tree = nil
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(1, v.first-1).Bare()) {
		if err != nil {
			return err
		}
		if err := v.note(&e); err != nil {
			return err
		}
	}
	v.paths.tree = append(v.paths.tree, own...)
	return nil
}

// note notes where the path turns, and what was redacted.
func (v *snapshotVerifier) note(e *event.Event) error {
	if err := v.paths.tree.Add(e); err != nil {
		return err
	}
	if e = e.Effective(); e.Redacted() && !e.Type.Upkeep() && (v.erased == 0 || e.Seq < v.erased) {
		v.erased = e.Seq
	}
	return nil
}

// snapshot takes in a snapshot event: as a suspect, as one to skip, or as a
// finding if it cannot be read.
func (v *snapshotVerifier) snapshot(ctx context.Context, e *event.Event) error {
	v.report.Snapshots++
	switch {
	case e.Redacted():
		v.report.Skipped.Redacted++
		return nil
	case e.Copied():
		v.report.Skipped.Copied++
		return nil
	}
	s := suspect{ref: SnapshotRef{Seq: e.Seq}}
	snap, err := v.payload(ctx, e)
	if err != nil {
		return v.find(&s, "", err)
	}
	s.ref = SnapshotRef{Seq: e.Seq, ID: snap.SnapshotID, Projection: snap.Projection, Covers: snap.Seq}
	s.mark = snap.IsMark()
	if snap.Seq < 0 || snap.Seq >= e.Seq {
		return v.find(&s, "", ErrOffPath)
	}
	switch err := checkCovered(ctx, v.log, v.session, e, &snap, &Explain{}); {
	case errors.Is(err, ErrOtherEvents):
		v.report.Skipped.OtherEvents++
		return nil
	case err != nil:
		return err
	}
	if s.mark {
		v.marked(&s, &snap)
	} else if err := v.bodied(ctx, &s, &snap); err != nil {
		return err
	}
	if len(s.parts) > 0 {
		v.suspects = append(v.suspects, s)
	}
	return nil
}

// payload reads a snapshot, also one whose event was read bare.
func (v *snapshotVerifier) payload(ctx context.Context, e *event.Event) (event.Snapshot, error) {
	if _, _, spilled := e.Spilled(); spilled && e.Data == nil {
		whole, err := v.log.Event(ctx, v.session, e.Seq)
		if err != nil && (ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed)) {
			return event.Snapshot{}, err
		}
		if err != nil {
			return event.Snapshot{}, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
		}
		e = &whole
	}
	snap, err := snapshotOf(e)
	if err != nil {
		return snap, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
	}
	return snap, nil
}

// marked says what of a mark is to be compared.
func (v *snapshotVerifier) marked(s *suspect, snap *event.Snapshot) {
	set, known := v.sets[snap.Projection]
	switch {
	case snap.StateDigest == "": // it says nothing
	case !known:
		v.report.Skipped.Unknown++
	case set.version() != snap.Version:
		v.report.Skipped.OtherVersion++
	default:
		s.digest = snap.StateDigest
		for _, p := range set.Parts {
			s.parts = append(s.parts, p.ProjectionName())
		}
	}
}

// bodied says what of a body is to be compared.
func (v *snapshotVerifier) bodied(ctx context.Context, s *suspect, snap *event.Snapshot) error {
	b, _, err := readBody(ctx, v.log, snap)
	if err != nil {
		return v.unread(s, snap, err)
	}
	whole := true
	for _, name := range slices.Sorted(maps.Keys(b)) {
		p, known := v.parts[name]
		switch {
		case !known:
			v.report.Skipped.Unknown++
			whole = false
		case p.begin().version() != b[name].Version:
			v.report.Skipped.OtherVersion++
			whole = false
		default:
			s.parts = append(s.parts, name)
		}
	}
	if whole {
		s.digest = snap.StateDigest
	}
	return nil
}

// unread takes in a body that could not be read. Of a name that nobody knows it
// may be in a form of its own.
func (v *snapshotVerifier) unread(s *suspect, snap *event.Snapshot, err error) error {
	set, known := v.sets[snap.Projection]
	switch {
	case errors.Is(err, ErrBadDigest) || errors.Is(err, eventlog.ErrBlobNotFound):
	case skippable(err) && !known:
		v.report.Skipped.Unknown++
		return nil
	case skippable(err) && set.version() != snap.Version:
		v.report.Skipped.OtherVersion++
		return nil
	}
	return v.find(s, "", err)
}

// find reports a snapshot; an error that says nothing of it is returned.
func (v *snapshotVerifier) find(s *suspect, part string, err error) error {
	if !skippable(err) && !errors.Is(err, ErrOtherState) && !errors.Is(err, ErrOtherDigest) {
		return err
	}
	v.report.Findings = append(v.report.Findings, SnapshotFinding{Session: v.session, Snapshot: s.ref, Part: part, Mark: s.mark, Err: err})
	return nil
}

// choose leaves the suspects that a replay says something of, in the order of
// what they cover, and marks the paths that lead there.
func (v *snapshotVerifier) choose() {
	v.suspects = slices.DeleteFunc(v.suspects, func(s suspect) bool { return !v.replayable(&s) })
	slices.SortStableFunc(v.suspects, func(a, b suspect) int { return cmp.Compare(a.ref.Covers, b.ref.Covers) })
	v.paths.last, v.paths.uses = map[int64]int64{}, map[int64]int{}
	for i := range v.suspects {
		v.paths.need(v.suspects[i].ref.Covers)
	}
}

func (v *snapshotVerifier) replayable(s *suspect) bool {
	switch {
	case !v.paths.tree.Leads(s.ref.Seq, s.ref.Covers):
		v.report.Findings = append(v.report.Findings, SnapshotFinding{Session: v.session, Snapshot: s.ref, Mark: s.mark, Err: ErrOffPath})
	case s.mark && v.erased > 0 && v.erased <= s.ref.Covers:
		v.report.Skipped.Redacted++
	default:
		return true
	}
	return false
}
