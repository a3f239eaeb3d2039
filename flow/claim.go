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

// claim takes the lease of the next epoch and appends run_claimed.
func (r *runner) claim(ctx context.Context) error {
	control, _ := projection.State(r.live, projection.Control())
	if err := r.takeLease(ctx, control.Epoch+1); err != nil {
		return err
	}
	if err := r.appendDurable(ctx, r.claimed()); err != nil {
		return errors.Join(err, r.lease.Release())
	}
	return nil
}

func (r *runner) takeLease(ctx context.Context, epoch int64) error {
	l, err := leaser(r.log)
	if err != nil {
		return err
	}
	r.epoch = epoch
	r.lease, err = l.Lease(ctx, leaseName(r.session, r.epoch))
	if errors.Is(err, eventlog.ErrLeased) {
		return fmt.Errorf("session %q: %w", r.session, ErrAlreadyRunning)
	}
	return err
}

func (r *runner) claimed() event.Event {
	return event.New(event.RunClaim{Epoch: r.epoch, Runner: r.options.Runner, Lease: leaseName(r.session, r.epoch)})
}

// begin begins a new session with the content of a Start, and claims it.
func (s *settings) begin(ctx context.Context, from Start, o StartOptions) (*runner, Resumed, error) {
	if o.Retry || len(o.Answers) > 0 {
		return nil, Resumed{}, fmt.Errorf("%w: session %q is new: it has no turn to retry and no review to answer", ErrStart, from.session)
	}
	r := s.newRunner(from.session, nil)
	events := []event.Event{event.New(event.Session{Agent: s.name, Parent: from.parent})}
	if from.content != nil {
		content, err := from.content(s)
		if err != nil {
			return nil, Resumed{}, fmt.Errorf("%w: %w", ErrStart, err)
		}
		events = append(events, content...)
	}
	if err := r.takeLease(ctx, 1); err != nil {
		return nil, Resumed{}, err
	}
	events = append(events, r.claimed())
	err := eventlog.UntilKnown(ctx, func() error {
		return bounded(ctx, func() error {
			_, err := s.log.Append(ctx, from.session, eventlog.New().Durable(), events...)
			return err
		})
	})
	if err == nil {
		r.live, err = resume(ctx, s.log, from.session, s.set, s.options.Snapshots)
	}
	if err != nil {
		return nil, Resumed{}, errors.Join(err, r.lease.Release())
	}
	r.idle = true
	return r, Resumed{}, nil
}

// release ends the claim. Another runner may take the session at once.
func (r *runner) release(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.appendEvents(ctx, event.New(event.RunRelease{Epoch: r.epoch}))
	if errors.Is(err, ErrOvertaken) || errors.Is(err, ErrRewound) || errors.Is(err, eventlog.ErrNotFound) {
		err = nil
	}
	return errors.Join(err, r.lease.Release())
}
