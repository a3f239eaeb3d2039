package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/upkeep/transfer"
)

// checkParent finds out whether a fork's parent was repaired since, so that its
// event at the fork point has another hash. A parent that is missing or damaged does
// not prevent the repair of the fork.
func (r *repairer) checkParent(ctx context.Context) error {
	if r.fork == nil || r.fork.Seq == 0 {
		return nil
	}
	f := *r.fork
	point, err := r.forkPoint(ctx, &f)
	if errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrEventNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	repaired := point.ID == f.EventID || point.Type.Name() == event.Lost
	if repaired && (point.ID != f.EventID || point.Hash() != f.Hash) {
		f.EventID, f.Hash = point.ID, point.Hash()
		r.refork = &f
	}
	return nil
}

// forkPoint is the parent's event at the fork point, in the log that is written to.
// A parent that is missing there is copied or repaired into it; a dry run plans that.
func (r *repairer) forkPoint(ctx context.Context, f *event.Fork) (event.Event, error) {
	if r.into != r.log {
		_, err := r.into.Head(ctx, f.Parent)
		switch missing := errors.Is(err, eventlog.ErrNotFound); {
		case missing && r.opts.DryRun:
			return r.planned(ctx, f.Parent, f.Seq)
		case missing:
			err = r.bring(ctx, f.Parent)
		}
		if err != nil {
			return event.Event{}, err
		}
	}
	return bareEvent(ctx, r.into, f.Parent, f.Seq)
}

func bareEvent(ctx context.Context, log *eventlog.Log, session string, seq int64) (event.Event, error) {
	for e, err := range log.Read(ctx, session, eventlog.Between(seq, seq).Bare()) {
		return e, err
	}
	return event.Event{}, fmt.Errorf("event %d of session %q: %w", seq, session, eventlog.ErrEventNotFound)
}

// bring copies or repairs a session into the other log.
func (r *repairer) bring(ctx context.Context, session string) error {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	if err == nil && p.report.Action != Salvage {
		_, err = transfer.Session(ctx, r.into, r.log, session)
	}
	return err
}

// planned is an event of the lineage that a session will have in the other log.
func (r *repairer) planned(ctx context.Context, session string, seq int64) (event.Event, error) {
	p, err := r.sibling(session)
	if err == nil {
		err = p.run(ctx, session)
	}
	switch {
	case err != nil:
		return event.Event{}, err
	case p.report.Action != Salvage:
		return bareEvent(ctx, r.log, session, seq)
	case seq < p.start && p.fork != nil:
		return p.planned(ctx, p.fork.Parent, seq)
	}
	for e, err := range p.events(ctx, p.report.As, p.refork) {
		if err != nil || e.Seq == seq {
			return e, err
		}
	}
	return event.Event{}, eventlog.ErrEventNotFound
}

// sibling repairs another session in the same way.
func (r *repairer) sibling(session string) (*repairer, error) {
	seen := map[string]bool{r.session: true}
	maps.Copy(seen, r.seen)
	if seen[session] {
		return nil, &eventlog.CorruptError{Session: session, Offset: -1, Cause: engine.ErrCycle}
	}
	p := newRepairer(r.log, Options{Into: r.into, DryRun: r.opts.DryRun})
	p.seen = seen
	return p, nil
}
