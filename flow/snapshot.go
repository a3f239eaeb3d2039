package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// Snapshot is the state of a session at a snapshot.
type Snapshot[S any] struct {
	Ref
	// Parent is the snapshot before, and Index counts the snapshots of the path.
	Parent string
	Index  int
	// Seq is the event that the state is of, and Turn the index of its turn.
	Seq  int64
	Turn int
	Content[S]
	// Status is the status of the session at the snapshot. A snapshot of a turn that did not
	// end has the status of the turn now. StopReason and Err belong to the turn.
	Status     Status
	StopReason string
	Err        error
}

// Snapshot reads a snapshot. For the snapshot that is reserved for a turn (Turn.SnapshotID,
// Handle.Ref) it returns the status of the turn, and the content is the state at the newest
// event of the turn. While its input waits, the status is StatusNew. The snapshot of a hibernation can be read also if its process was
// killed before it made the snapshot. The error is projection.ErrSnapshotNotFound if the session has
// neither.
func (a *Agent[S]) Snapshot(ctx context.Context, ref Ref) (Snapshot[S], error) {
	s, err := a.settings(false)
	if err != nil {
		return Snapshot[S]{}, err
	}
	made, err := projection.Find(ctx, a.Log, ref.Session, ref.Snapshot)
	missing := errors.Is(err, projection.ErrSnapshotNotFound)
	if err != nil && !missing {
		return Snapshot[S]{}, err
	}
	turn, found, err := findTurn(ctx, a.Log, ref)
	switch {
	case err != nil:
		return Snapshot[S]{}, err
	case !found && missing:
		return Snapshot[S]{}, fmt.Errorf("%w: %q in session %q", projection.ErrSnapshotNotFound, ref.Snapshot, ref.Session)
	}
	out := Snapshot[S]{Ref: ref, Seq: turn.last, Turn: turn.start.Index, Status: turn.status, StopReason: turn.end.StopReason}
	if !missing {
		out.Parent, out.Index, out.Seq, out.Turn = made.Snapshot.ParentSnapshotID, made.Snapshot.Index, made.Event.Seq, made.Snapshot.TurnIndex
	}
	if turn.end.Status == event.TurnStatusFailed {
		out.Err = &TurnError{Session: ref.Session, Turn: turn.end.TurnID, Code: turn.end.Code, Err: errors.New(turn.end.Error)}
	}
	l, err := projection.LoadSet(ctx, a.Log, ref.Session, s.set, projection.Options{At: out.Seq})
	if err != nil {
		return out, err
	}
	if turn.status == "" || turn.status == StatusExpired {
		info, err := infoOf(ctx, a.Log, l)
		if err != nil {
			return out, err
		}
		out.Status = info.Status
	}
	out.Content, err = contentOf[S](s, l)
	return out, err
}

// place is a place in the log: the event of a snapshot.
type place struct {
	seq   int64
	point fork.Point
}

// placeOf is the place of a snapshot. If the snapshot was not made, because the process was
// killed before or the policy declined, it is the hibernation or the end of the turn that
// reserved the id.
func placeOf(ctx context.Context, log *eventlog.Log, ref Ref) (place, error) {
	made, err := projection.Find(ctx, log, ref.Session, ref.Snapshot)
	if err == nil {
		return place{made.Event.Seq, fork.AtSnapshot(ref.Snapshot)}, nil
	}
	if !errors.Is(err, projection.ErrSnapshotNotFound) {
		return place{}, err
	}
	turn, _, failed := findTurn(ctx, log, ref)
	switch turn.status {
	case "", StatusFinished, StatusAborted:
		if turn.last > 0 {
			err = failed
		}
	}
	return place{turn.last, fork.AtSeq(turn.last)}, err
}

// reservedTurn is the turn that reserved a snapshot id, for its end or for a hibernation.
type reservedTurn struct {
	start event.TurnStart
	end   event.TurnCompletion
	last  int64 // the newest event of the turn, or the hibernation
	// status is the status of the turn now; empty for a hibernation.
	status Status
}

// findTurn finds the turn that reserved a snapshot id, and its status now.
func findTurn(ctx context.Context, log *eventlog.Log, ref Ref) (t reservedTurn, found bool, err error) {
	head, err := log.Head(ctx, ref.Session)
	if err != nil {
		return t, false, err
	}
	ends := map[string]ended{}
	var hibernated ulid.ULID
	for e, err := range log.Read(ctx, ref.Session, eventlog.Between(0, head.Seq).Backward()) {
		if err != nil {
			return t, false, err
		}
		switch e.Type.Name() {
		case event.TurnCompleted:
			p, err := event.DecodeKept[event.TurnCompletion](&e)
			if err != nil {
				return t, false, err
			}
			if _, known := ends[p.TurnID.String()]; !known {
				ends[p.TurnID.String()] = ended{p, e.Seq}
			}
		case event.ExternalInput:
			if snapshotOf(ref.Session, e.ID) == ref.Snapshot {
				return turnOfInput(ctx, log, ref, &e)
			}
		case event.TurnHibernated:
			p, err := event.DecodeKept[event.TurnHibernation](&e)
			if err != nil {
				return t, false, err
			}
			if p.SnapshotID == ref.Snapshot {
				t.last, hibernated = e.Seq, p.TurnID
			}
		case event.TurnStarted:
			p, err := event.DecodeKept[event.TurnStart](&e)
			if err != nil {
				return t, false, err
			}
			if e.ID == hibernated {
				t.start = p
				return t, true, nil
			}
			if p.SnapshotID != ref.Snapshot {
				continue
			}
			t.start = p
			if end, ok := ends[e.ID.String()]; ok {
				t.end, t.last, t.status = end.TurnCompletion, end.seq, endedStatus(end.Status)
				if t.status == StatusFailed { // its path ends before the turn_completed
					t.last--
				}
				return t, true, nil
			}
			info, err := Info(ctx, log, ref.Session)
			t.last, t.status = head.Seq, info.Status
			return t, true, err
		}
	}
	return t, false, nil
}

// turnOfInput finds the turn of an input that began none: it waits, or went into the turn of
// another input.
func turnOfInput(ctx context.Context, log *eventlog.Log, ref Ref, e *event.Event) (t reservedTurn, found bool, err error) {
	x, err := event.DecodeKept[event.External](e)
	if err != nil {
		return t, false, err
	}
	l, err := projection.LoadSet(ctx, log, ref.Session, projection.Of("flow:input", projection.Control(), turnsOfInputs()))
	if err != nil {
		return t, false, err
	}
	t.last, t.status = l.Head.Seq, StatusNew
	begun, _ := projection.State(l, turnsOfInputs())
	if waiting(l, x.InputID) {
		return t, true, nil
	}
	steered, known := begun.Begun[x.InputID]
	if !known {
		return t, false, nil
	}
	for _, b := range begun.Begun {
		if b.Turn == steered.Turn && b.Snapshot != "" && b.Snapshot != ref.Snapshot {
			return findTurn(ctx, log, b.ref(ref.Session))
		}
	}
	return t, false, nil
}

// ended is the newest end of a turn.
type ended struct {
	event.TurnCompletion
	seq int64
}
