package eventlog

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/engine"
)

// snapshots yields the snapshots and the head_moved events of a session's lineage as they are
// stored, newest first. If the store has no index of them, it yields the other events too. An event
// is valid until the caller asks for the next one.
func (l *Log) snapshots(ctx context.Context, session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		span := Span{Backward: true, Snapshots: true, Transient: true}
		if !yieldAll(l.store.Read(ctx, session, span), yield) {
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
			span.To = a.Through.Seq
			if span.To == 0 || !yieldAll(l.store.Read(ctx, a.Session, span), yield) {
				return
			}
		}
	}
}

// yieldAll yields the events of a sequence. It returns false at the end of the iteration.
func yieldAll(events iter.Seq2[event.Event, error], yield func(event.Event, error) bool) bool {
	for e, err := range events {
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// Snapshots implements engine.Engine.
func (e logEngine) Snapshots(ctx context.Context, session string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := e.log.readable(ctx, session); err != nil {
			yield(event.Event{}, err)
			return
		}
		for ev, err := range e.log.snapshots(ctx, session) {
			if err == nil && !engine.IsIndexed(ev.Type) {
				continue
			}
			if err == nil {
				ev, err = e.log.resolveCopy(ctx, ev.Clone())
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}
