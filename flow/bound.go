package flow

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/projection"
)

// maxBusy is how many sessions of a process use their log at a time. Each needs a few
// file descriptors, so a process with few descriptors can run many sessions.
const maxBusy = 32

var busy = make(chan struct{}, maxBusy)

// resume loads the states of a session, bounded.
func resume(ctx context.Context, log *eventlog.Log, session string, set projection.Set, o projection.LiveOptions) (v *projection.Live, err error) {
	err = bounded(ctx, func() error {
		v, err = projection.Resume(ctx, log, session, set, o)
		return err
	})
	return v, err
}

// appendDurable appends events to the session, bounded. They do not wait for the disk if ctx comes
// from engine.SetUnsynced.
func (r *runner) appendDurable(ctx context.Context, events ...event.Event) error {
	return eventlog.UntilKnown(ctx, func() error {
		return bounded(ctx, func() error {
			head, err := r.live.AppendDurable(ctx, events...)
			if err == nil {
				r.appended.Store(head.Seq)
				r.unsynced = event.Head{}
				if engine.Unsynced(ctx) {
					r.unsynced = head
				}
			}
			return err
		})
	})
}

// pending is the pending work of the session, bounded.
func (r *runner) pending(ctx context.Context) (p projection.Pending, err error) {
	err = bounded(ctx, func() error {
		p, err = projection.PendingOf(ctx, r.log, r.live)
		return err
	})
	return p, err
}

// bounded calls f, which uses the log, when fewer than maxBusy calls run. f must not call
// bounded.
func bounded(ctx context.Context, f func() error) error {
	select {
	case busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-busy }()
	return f()
}
