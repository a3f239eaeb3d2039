package eventlog

import (
	"context"
	"errors"
	"maps"
)

// parent finds out whether a fork's parent was repaired since, so that its event
// at the fork point has another hash. One that is missing or damaged keeps
// nobody from repairing the fork.
func (r *repairer) parent(ctx context.Context) error {
	if r.fork == nil || r.fork.Seq == 0 {
		return nil
	}
	f := *r.fork
	point, err := r.forkPoint(ctx, &f)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrEventNotFound) || errors.Is(err, ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	repaired := point.ID == f.EventID || point.Type.Name() == Lost
	if repaired && (point.ID != f.EventID || point.Hash() != f.Hash) {
		f.EventID, f.Hash = point.ID, point.Hash()
		r.refork = &f
	}
	return nil
}

// forkPoint is the parent's event at the fork point, in the log that is written
// to. A parent that is not there is copied or repaired into it, or else what
// that would give is looked at.
func (r *repairer) forkPoint(ctx context.Context, f *Fork) (Event, error) {
	if r.into != r.log {
		_, err := r.into.Head(ctx, f.Parent)
		switch missing := errors.Is(err, ErrNotFound); {
		case missing && r.dry:
			return r.planned(ctx, f.Parent, f.Seq)
		case missing:
			err = r.bring(ctx, f.Parent)
		}
		if err != nil {
			return Event{}, err
		}
	}
	return r.into.rawEvent(ctx, f.Parent, f.Seq)
}

// bring copies or repairs a session into the other log.
func (r *repairer) bring(ctx context.Context, session string) error {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	if err == nil && p.report.Action != RepairSalvage {
		_, err = convert(ctx, r.into, r.log, session)
	}
	return err
}

// planned is an event of the lineage that a session will have in the other log.
func (r *repairer) planned(ctx context.Context, session string, seq int64) (Event, error) {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	switch {
	case err != nil:
		return Event{}, err
	case p.report.Action != RepairSalvage:
		return r.log.rawEvent(ctx, session, seq)
	case seq < p.start && p.fork != nil:
		return p.planned(ctx, p.fork.Parent, seq)
	}
	for e, err := range p.events(ctx, p.report.As, p.refork) {
		if err != nil || e.Seq == seq {
			return e, err
		}
	}
	return Event{}, ErrEventNotFound
}

// sibling repairs another session in the same way.
func (r *repairer) sibling(session string) (*repairer, error) {
	seen := map[string]bool{r.session: true}
	maps.Copy(seen, r.seen)
	if seen[session] {
		return nil, &CorruptError{Session: session, Offset: -1, Cause: errForkCycle}
	}
	return &repairer{log: r.log, into: r.into, opts: RepairOptions{Into: r.into}, dry: r.dry, seen: seen,
		report: Repair{Session: session, Action: RepairNone}}, nil
}
