package eventlog

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
)

// snapshots implements engine.Engine.Snapshots.
func (l *Log) snapshots(ctx context.Context, session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.readable(ctx, session); err != nil {
			yield(event.Event{}, err)
			return
		}
		if !l.ownSnapshots(ctx, session, 0, yield) {
			return
		}
		for a, err := range l.Ancestors(ctx, session) {
			if err == nil {
				err = l.CheckAncestor(ctx, a)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if a.Through.Seq == 0 || !l.ownSnapshots(ctx, a.Session, a.Through.Seq, yield) {
				return
			}
		}
	}
}

// ownSnapshots yields the snapshots and the head_moved events of one session up to seq to; 0 is no
// bound. It returns false at the end of the iteration.
func (l *Log) ownSnapshots(ctx context.Context, session string, to int64, yield func(event.Event, error) bool) bool {
	for e, err := range l.store.Read(ctx, session, Span{To: to, Backward: true, Snapshots: true, Transient: true}) {
		if err == nil {
			if name := e.Type.Name(); name != event.ProjectionSnapshotted && name != event.HeadMoved {
				continue
			}
			e, err = l.resolveCopy(ctx, e.Clone())
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}
