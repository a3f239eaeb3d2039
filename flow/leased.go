package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

var (
	// errLeaseLost ends the context of effects whose runner has no lease.
	errLeaseLost = errors.New("the store lost the lease of the runner")
	// errIntentLost: intents that were not on disk are missing. The server of the store crashed.
	errIntentLost = errors.New("the store lost an intent that was not on disk")
)

// regainTime bounds the wait for a store that lost a lease and cannot be reached.
const regainTime = 15 * time.Second

// leasedLoop is loop. If the store loses the lease, for example because a server starts again,
// the effects end. The runner takes the lease again, and executes the open turn again. It does
// so too if the server lost an intent.
func (r *runner) leasedLoop(ctx context.Context) error {
	for {
		leased, lose := context.WithCancelCause(ctx)
		lost := r.lease.Lost()
		go func() {
			select {
			case <-lost:
				lose(errLeaseLost)
			case <-leased.Done():
			}
		}()
		err := r.loop(leased)
		ended := context.Cause(leased) == errLeaseLost
		lose(nil)
		switch {
		case ended && (errors.Is(err, errLeaseLost) || errors.Is(err, context.Canceled)):
			err = r.regain(ctx)
		case errors.Is(err, errIntentLost):
			err = r.reload(ctx)
		default:
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("session %q: continue after a loss: %w", r.session, err)
		}
	}
}

// regain takes the lease again. The error is ErrOvertaken if another runner claimed the session
// meanwhile.
func (r *runner) regain(ctx context.Context) error {
	l, err := leaser(r.log)
	if err != nil {
		return err
	}
	lease, err := l.Lease(ctx, leaseName(r.session, r.epoch))
	for end := time.Now().Add(regainTime); errors.Is(err, eventlog.ErrUnavailable) && time.Now().Before(end); {
		if err := sleep(ctx, regainTime/100); err != nil {
			return err
		}
		lease, err = l.Lease(ctx, leaseName(r.session, r.epoch))
	}
	if err != nil {
		return err
	}
	r.lease = lease
	return r.reload(ctx)
}

// reload loads the states of the session again. The error is ErrOvertaken if another runner
// claimed the session meanwhile.
func (r *runner) reload(ctx context.Context) error {
	live, err := resume(ctx, r.log, r.session, r.set, r.options.Snapshots)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.fresh, r.unsynced, r.rendering = live, nil, event.Head{}, projection.Rendering{}
	r.appended.Store(live.Head.Seq)
	r.foreign = live.Head.Seq // it may be an event of another writer
	r.signal()
	if control, _ := projection.State(r.live, projection.Control()); !r.claims(control) {
		return ErrOvertaken
	}
	return nil
}

// checkUnsynced returns errIntentLost if the session lacks the newest intents that were not on
// disk. The caller holds r.mu.
func (r *runner) checkUnsynced(ctx context.Context) error {
	if r.unsynced.IsZero() {
		return nil
	}
	lost, err := vanished(ctx, r.log, r.session, r.unsynced)
	if lost {
		err = fmt.Errorf("%w: event %d of session %q", errIntentLost, r.unsynced.Seq, r.session)
	}
	return err
}

// vanished reports whether the session has no longer the event at a head.
func vanished(ctx context.Context, log *eventlog.Log, session string, at event.Head) (bool, error) {
	e, err := log.Event(ctx, session, at.Seq)
	if errors.Is(err, eventlog.ErrEventNotFound) {
		return true, nil
	}
	return err == nil && e.Head() != at, err
}

// watcherLost reports whether err ended a watcher because the event at a head, the last one that
// it read, has vanished: it was an intent that was not on disk. Its runner notices that too, and
// executes the turn again.
func watcherLost(ctx context.Context, log *eventlog.Log, session string, at event.Head, err error) bool {
	if at.Seq == 0 || !errors.Is(err, eventlog.ErrCorrupt) {
		return false
	}
	lost, err := vanished(ctx, log, session, at)
	return lost && err == nil
}
