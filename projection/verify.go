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

// SnapshotReport is the result of VerifySnapshots for one session.
type SnapshotReport struct {
	// Snapshots counts the session's own snapshots. The snapshots in the prefix that
	// a fork shares belong to the parent.
	Snapshots int64
	// Checked counts the states in bodies and the marks that were compared with a
	// replay.
	Checked int64
	// Skipped counts the states in bodies and the marks that were not compared with a
	// replay, by reason: the reasons "redacted", "copied", "other_version" and "other_events"
	// of a SnapshotProblem; "unknown", a projection that VerifySnapshots was not given; and
	// "unfolded", an event before it cannot be folded. A body that was not opened counts
	// once. A mark that covers an event redacted since counts as redacted.
	Skipped  map[string]int64
	Findings []SnapshotProblem
}

// VerifySnapshots compares a session's own snapshots with a replay, also the
// snapshots on orphaned branches. It knows the sets in the arguments, Session, and
// the projections of this package. The report lists contradictions. The error is a
// missing session, an invalid set or a failed read; it is a *eventlog.CorruptError
// for a damaged lineage.
//
// VerifySnapshots reads the session's own events. If there are snapshots to compare,
// it folds the lineage once, up to the last event that a snapshot covers. It keeps in
// memory the states at the events that a head_moved returns to, until the move.
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
		// A redaction meanwhile can look like a contradiction: try again.
		if len(v.result.Findings) == 0 || try == tries {
			return v.result, nil
		}
		if now, err := log.Head(ctx, session); err != nil || now == head {
			return v.result, err
		}
	}
}

// snapshotVerifier verifies the snapshots of one session.
type snapshotVerifier struct {
	log     *eventlog.Log
	session string
	sets    map[string]Set  // by name
	parts   map[string]Part // the parts of all sets, by name
	result  SnapshotReport

	first      int64 // the seq of the session's first own event
	candidates []candidate
	erased     int64 // the seq of the first redacted event

	branches branchReplay
	seq      int64 // the last folded event
}

// candidate is a snapshot to compare with a replay.
type candidate struct {
	ref    SnapshotRef
	mark   bool
	parts  []string     // names of projections, sorted
	digest event.Digest // empty: not compared
}

// weight is the number of the candidate's states in the counts of the report.
func (s *candidate) weight() int64 {
	if s.mark {
		return 1
	}
	return int64(len(s.parts))
}

func newSnapshotVerifier(log *eventlog.Log, session string, sets []Set) *snapshotVerifier {
	v := &snapshotVerifier{log: log, session: session, sets: map[string]Set{}, parts: map[string]Part{}}
	for _, p := range builtin() {
		v.addSet(Of("", p))
	}
	v.addSet(Session())
	for _, set := range sets {
		v.addSet(set)
	}
	return v
}

func (v *snapshotVerifier) addSet(set Set) {
	v.sets[set.name()] = set
	for _, p := range set.Parts {
		v.parts[p.ProjectionName()] = p
	}
}

func (v *snapshotVerifier) run(ctx context.Context, head int64) error {
	if err := v.list(ctx, head); err != nil || len(v.candidates) == 0 {
		return err
	}
	if err := v.prefix(ctx); err != nil {
		return err
	}
	v.choose()
	if len(v.candidates) == 0 {
		return nil
	}
	return v.replay(ctx)
}

// list collects the snapshots among the session's own events.
func (v *snapshotVerifier) list(ctx context.Context, head int64) error {
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(0, head).Own().Bare()) {
		if err != nil {
			return err
		}
		if v.first == 0 {
			v.first = e.Seq
		}
		if err := v.addEvent(&e); err != nil {
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

// prefix reads the moves and redactions in the prefix that a fork shares.
func (v *snapshotVerifier) prefix(ctx context.Context) error {
	if v.first <= 1 {
		return nil
	}
	own := v.branches.paths.tree
	v.branches.paths.tree = nil
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(1, v.first-1).Bare()) {
		if err != nil {
			return err
		}
		if err := v.addEvent(&e); err != nil {
			return err
		}
	}
	v.branches.paths.tree = append(v.branches.paths.tree, own...)
	return nil
}

// addEvent adds the event to the tree, and notes the first redacted event.
func (v *snapshotVerifier) addEvent(e *event.Event) error {
	if err := v.branches.paths.tree.Add(e); err != nil {
		return err
	}
	if e = e.Effective(); e.Redacted() && !e.Type.Upkeep() && (v.erased == 0 || e.Seq < v.erased) {
		v.erased = e.Seq
	}
	return nil
}

// snapshot makes a snapshot event a candidate, skips it, or reports that it cannot be
// read.
func (v *snapshotVerifier) snapshot(ctx context.Context, e *event.Event) error {
	v.result.Snapshots++
	switch {
	case e.Redacted():
		v.skip(string(redactedSnapshot), 1)
		return nil
	case e.Copied():
		v.skip(string(copiedSnapshot), 1)
		return nil
	}
	s := candidate{ref: SnapshotRef{Seq: e.Seq}}
	snap, err := v.payload(ctx, e)
	if err != nil {
		return v.report(&s, "", err)
	}
	s.ref = refTo(e, &snap)
	s.mark = snap.IsMark()
	if snap.Seq < 0 || snap.Seq >= e.Seq {
		return v.report(&s, "", offPath)
	}
	switch err := checkCovered(ctx, v.log, v.session, e, &snap, &Explain{}); {
	case errors.Is(err, otherEvents):
		v.skip(string(otherEvents), 1)
		return nil
	case err != nil:
		return err
	}
	if s.mark {
		v.addMark(&s, &snap)
	} else if err := v.addBody(ctx, &s, &snap); err != nil {
		return err
	}
	if len(s.parts) > 0 {
		v.candidates = append(v.candidates, s)
	}
	return nil
}

// payload decodes a snapshot event. It reads a payload in a blob, which a bare event
// lacks.
func (v *snapshotVerifier) payload(ctx context.Context, e *event.Event) (event.Snapshot, error) {
	if _, _, spilled := e.Spilled(); spilled && e.Data == nil {
		whole, err := v.log.Event(ctx, v.session, e.Seq)
		if err != nil && (ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed)) {
			return event.Snapshot{}, err
		}
		if err != nil {
			return event.Snapshot{}, fmt.Errorf("%w: %w", unreadable, err)
		}
		e = &whole
	}
	snap, err := snapshotOf(e)
	if err != nil {
		return snap, fmt.Errorf("%w: %w", unreadable, err)
	}
	return snap, nil
}

// addMark selects the comparisons for a mark.
func (v *snapshotVerifier) addMark(s *candidate, snap *event.Snapshot) {
	set, known := v.sets[snap.Projection]
	switch {
	case snap.StateDigest == "": // nothing to compare
	case !known:
		v.skip(unknownProjection, 1)
	case set.version() != snap.Version:
		v.skip(string(otherVersion), 1)
	default:
		s.digest = snap.StateDigest
		for _, p := range set.Parts {
			s.parts = append(s.parts, p.ProjectionName())
		}
	}
}

// addBody selects the comparisons for a body.
func (v *snapshotVerifier) addBody(ctx context.Context, s *candidate, snap *event.Snapshot) error {
	b, _, err := readBody(ctx, v.log, snap)
	if err != nil {
		return v.unreadable(s, snap, err)
	}
	whole := true
	for _, name := range slices.Sorted(maps.Keys(b)) {
		p, known := v.parts[name]
		switch {
		case !known:
			v.skip(unknownProjection, 1)
			whole = false
		case p.begin().version() != b[name].Version:
			v.skip(string(otherVersion), 1)
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

// unreadable reports or skips a body that cannot be read. A body of an unknown
// projection can have an unknown format.
func (v *snapshotVerifier) unreadable(s *candidate, snap *event.Snapshot, err error) error {
	set, known := v.sets[snap.Projection]
	_, skip := problemOf(s.ref, err)
	switch {
	case errors.Is(err, badDigest) || errors.Is(err, eventlog.ErrBlobNotFound):
	case skip && !known:
		v.skip(unknownProjection, 1)
		return nil
	case skip && set.version() != snap.Version:
		v.skip(string(otherVersion), 1)
		return nil
	}
	return v.report(s, "", err)
}

// The reasons to skip a state that are no problem of the snapshot.
const (
	unknownProjection = "unknown"
	unfolded          = "unfolded"
)

// skip counts states that are not compared.
func (v *snapshotVerifier) skip(reason string, n int64) {
	if v.result.Skipped == nil {
		v.result.Skipped = map[string]int64{}
	}
	v.result.Skipped[reason] += n
}

// report adds a finding. It returns an error that is not about the snapshot.
func (v *snapshotVerifier) report(s *candidate, part string, err error) error {
	p, ok := problemOf(s.ref, err)
	if !ok {
		return err
	}
	p.Session, p.Part, p.Mark = v.session, part, s.mark
	v.result.Findings = append(v.result.Findings, p)
	return nil
}

// choose removes the candidates that a replay cannot check, sorts the others by the
// event they cover, and marks the paths to these events.
func (v *snapshotVerifier) choose() {
	v.candidates = slices.DeleteFunc(v.candidates, func(s candidate) bool { return !v.replayable(&s) })
	slices.SortStableFunc(v.candidates, func(a, b candidate) int { return cmp.Compare(a.ref.Covers, b.ref.Covers) })
	v.branches.paths.last, v.branches.paths.uses = map[int64]int64{}, map[int64]int{}
	for i := range v.candidates {
		v.branches.paths.need(v.candidates[i].ref.Covers)
	}
}

func (v *snapshotVerifier) replayable(s *candidate) bool {
	switch {
	case !v.branches.paths.tree.Leads(s.ref.Seq, s.ref.Covers):
		_ = v.report(s, "", offPath) // a reason is no error of the verification
	case s.mark && v.erased > 0 && v.erased <= s.ref.Covers:
		v.skip(string(redactedSnapshot), 1)
	default:
		return true
	}
	return false
}
