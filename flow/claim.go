package flow

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// leaseName is the name of the lease of a claim. It has the epoch, so that a claim of the
// next epoch can be made while a stopped process still holds its lease.
func leaseName(session string, epoch int64) string {
	return "run:" + session + ":" + strconv.FormatInt(epoch, 10)
}

// leaser is the ability that claims need.
func leaser(log *eventlog.Log) (eventlog.Leaser, error) {
	l, ok := eventlog.As[eventlog.Leaser](log.Store())
	if !ok {
		return nil, fmt.Errorf("leases: %w", eventlog.ErrUnsupported)
	}
	return l, nil
}

// alive reports whether the runner of a claim is alive.
func alive(ctx context.Context, log *eventlog.Log, session string, c *projection.Claim) (bool, error) {
	if c == nil {
		return false, nil
	}
	l, err := leaser(log)
	if err != nil {
		return false, err
	}
	return l.Leased(ctx, leaseName(session, c.Epoch))
}

// checkAlone returns ErrAlreadyRunning if the runner of a claim is alive.
func checkAlone(ctx context.Context, log *eventlog.Log, session string, c *projection.Claim) error {
	held, err := alive(ctx, log, session, c)
	if err == nil && held {
		err = fmt.Errorf("session %q, runner %q: %w", session, c.Runner, ErrAlreadyRunning)
	}
	return err
}

// claim takes the lease of the next epoch and appends run_claimed after some events.
func (r *runner) claim(ctx context.Context, first ...event.Event) error {
	control, _ := projection.State(r.live, projection.Control())
	if err := r.takeLease(ctx, control.Epoch+1); err != nil {
		return err
	}
	if err := r.appendDurable(ctx, append(first, r.claimed())...); err != nil {
		return errors.Join(err, r.lease.Release())
	}
	r.keep(first)
	return nil
}

// keep keeps the event of an input in memory, so that its turn begins without a read. The
// event was appended before the newest event of the session.
func (r *runner) keep(events []event.Event) {
	if n := len(events); n > 0 && events[n-1].Type.Name() == event.ExternalInput {
		r.stored = &events[n-1]
		r.stored.Seq = r.live.Head.Seq - 1
	}
}

// errClaiming: another runner has the lease of the next epoch, and has not appended its claim.
var errClaiming = fmt.Errorf("it claims the session now: %w", ErrAlreadyRunning)

func (r *runner) takeLease(ctx context.Context, epoch int64) error {
	l, err := leaser(r.log)
	if err != nil {
		return err
	}
	r.epoch = epoch
	r.lease, err = l.Lease(ctx, leaseName(r.session, r.epoch))
	if errors.Is(err, eventlog.ErrLeased) {
		return fmt.Errorf("session %q: %w", r.session, errClaiming)
	}
	return err
}

func (r *runner) claimed() event.Event {
	return event.New(event.RunClaim{Epoch: r.epoch, Runner: r.options.Runner, Lease: leaseName(r.session, r.epoch), Store: r.home})
}

// claims reports whether the newest claim is of this runner.
func (r *runner) claims(c *projection.ControlState) bool { return c.Claim != nil && c.Epoch == r.epoch }

// begin begins a new session with its content and its input, and claims it.
func (s *settings) begin(ctx context.Context, from *start) (o opened, err error) {
	r := s.newRunner(from, nil)
	events := []event.Event{event.New(event.Session{Agent: s.name, Parent: from.parent})}
	if from.content != nil {
		content, err := from.content(s)
		if err != nil {
			return o, fmt.Errorf("%w: %w", ErrStart, err)
		}
		events = append(events, content...)
	}
	o.ref.Session = from.session
	if from.in != nil {
		e := from.in.external(from.home)
		o.ref.Snapshot = snapshotOf(from.session, e.ID)
		events = append(events, e)
	}
	stored := events
	if !from.only() && !from.fresh {
		if err := r.takeLease(ctx, 1); err != nil {
			return o, err
		}
		events = append(events, r.claimed())
	}
	err = eventlog.UntilKnown(ctx, func() error {
		return bounded(ctx, func() error {
			_, err := s.log.Append(ctx, from.session, eventlog.New().Durable(), events...)
			return err
		})
	})
	if err == nil && r.lease == nil {
		return o, nil
	}
	if err == nil {
		r.live, err = resume(ctx, s.log, from.session, s.set, s.options.Snapshots)
	}
	if err != nil && r.lease != nil {
		err = errors.Join(err, r.lease.Release())
	}
	if err != nil {
		return o, err
	}
	r.keep(stored)
	o.r = r
	return o, nil
}

// release ends the claim. Another runner may take the session at once. If ended is nil and an
// input has come meanwhile, it does nothing and returns true.
func (r *runner) release(ctx context.Context, ended error) (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.append(ctx, func() ([]event.Event, error) {
		control, _ := projection.State(r.live, projection.Control())
		if more = ended == nil && len(control.Inbox) > 0; more || !r.claims(control) {
			return nil, nil
		}
		return []event.Event{event.New(event.RunRelease{Epoch: r.epoch})}, nil
	})
	if more && err == nil {
		return true, nil
	}
	if errors.Is(err, ErrOvertaken) || errors.Is(err, eventlog.ErrNotFound) {
		err = nil
	}
	return false, errors.Join(err, r.lease.Release())
}

// TakeOver ends the claim of a runner, also of one that is alive, for example in a stopped
// process. The runner cannot append any more; its effect may still run. The next Resume, Send
// or Serve continues the open turn. It takes over the children of the turn too. by is who takes
// the session over.
//
// In a copy of a store, the store of the log becomes the home of the session. The original
// does not learn of it: make sure that nobody continues the session there.
//
// A process that was stopped inside an append holds a lock of the store. TakeOver waits for the
// lock until ctx ends, or for the LockTimeout of the store; its error then names the runner, and
// the lock. Continue or end that process, and take over again.
func TakeOver(ctx context.Context, log *eventlog.Log, session, by string) (event.Head, error) {
	var children []string
	var claim *projection.Claim
	head, err := change(ctx, log, session, func(s *outside) ([]event.Event, error) {
		children = nil
		for _, c := range childrenOf(&s.pending) {
			children = append(children, c.SessionID)
		}
		control, _ := projection.State(s.loaded, projection.Control())
		epoch := control.Epoch + 1
		claim = control.Claim
		home, err := log.StoreID(ctx)
		if err != nil {
			return nil, err
		}
		return []event.Event{event.New(event.RunClaim{Epoch: epoch, Runner: by, Lease: leaseName(session, epoch), Store: home}), event.New(event.RunRelease{Epoch: epoch})}, nil
	})
	if err != nil && claim != nil {
		err = fmt.Errorf("take over session %q from runner %q (epoch %d): %w", session, claim.Runner, claim.Epoch, err)
	}
	for _, child := range children {
		if err == nil {
			if _, err = TakeOver(ctx, log, child, by); errors.Is(err, eventlog.ErrNotFound) {
				err = nil
			}
		}
	}
	return head, err
}
