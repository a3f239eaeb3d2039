package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// errLeaseLost ends the context of effects whose runner has no lease.
var errLeaseLost = errors.New("the store lost the lease of the runner")

// regainTime bounds the wait for a store that lost a lease and cannot be reached.
const regainTime = 15 * time.Second

// leasedLoop is loop. If the store loses the lease, for example because a server starts again,
// the effects end. The runner takes the lease again, and executes the open turn again.
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
		interrupted := context.Cause(leased) == errLeaseLost && (errors.Is(err, errLeaseLost) || errors.Is(err, context.Canceled))
		lose(nil)
		if !interrupted {
			return err
		}
		err = r.regain(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("session %q: the lease was lost: %w", r.session, err)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := bounded(ctx, func() error { return r.live.Follow(ctx) }); err != nil {
		return err
	}
	r.foreign = r.live.Head.Seq // it may be an event of another writer
	r.signal()
	if control, _ := projection.State(r.live, projection.Control()); !r.claims(control) {
		return ErrOvertaken
	}
	return nil
}
