package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Error is a warning: a sink did not get the data of a session. The next flush has the
// costs; write the op tree from the log. If the sink did not return in time, the error
// matches context.DeadlineExceeded.
type Error struct {
	// Sink is "snapshot" or "account".
	Sink    string
	Session string
	// Reason is the reason of the call: "subagent_finish" after a child, and "final" at the end.
	Reason string
	// Cause is the error or the panic of the sink. It matches context.DeadlineExceeded if
	// the sink, or an earlier call of it, did not return in time. That call may still run.
	Cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("session %q: %s sink (%s): %v", e.Session, e.Sink, e.Reason, e.Cause)
}

func (e *Error) Unwrap() error { return e.Cause }

// lateError is the cause of an Error that matches context.DeadlineExceeded.
type lateError string

func (e lateError) Error() string { return string(e) }

func (lateError) Is(target error) bool { return target == context.DeadlineExceeded }

const (
	errTimeout lateError = "the sink did not return in time"
	// errBlocked means that the sink was not called.
	errBlocked lateError = "the sink is blocked by an earlier call"
)

var errExited = errors.New("the sink ended its goroutine")

// sink calls a function of the user with a bound on the time.
type sink struct {
	mu      sync.Mutex
	blocked []chan struct{} // of the calls that were given up; closed when they return
}

// call calls f in a goroutine and waits for it, for at most the timeout. The context of f
// does not end with ctx. If an earlier call has not returned, f is not called; a patient
// call waits for the earlier one until the timeout.
func (s *sink) call(ctx context.Context, timeout time.Duration, patient bool, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	if err := s.await(ctx, patient); err != nil {
		cancel()
		return err
	}
	done := make(chan struct{})
	err := errExited
	go func() {
		defer cancel()
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		if err = f(ctx); errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", errTimeout, err)
		}
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	select { // both may have happened
	case <-done:
		return err
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = append(s.blocked, done)
	return errTimeout
}

// await returns nil if no earlier call is running that was given up.
func (s *sink) await(ctx context.Context, patient bool) error {
	for {
		earlier := s.running()
		if earlier == nil {
			return nil
		}
		if !patient {
			return errBlocked
		}
		select {
		case <-earlier:
		case <-ctx.Done():
			return errBlocked
		}
	}
}

// running returns a call that was given up and has not returned, or nil.
func (s *sink) running() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = slices.DeleteFunc(s.blocked, func(done chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if len(s.blocked) == 0 {
		return nil
	}
	return s.blocked[0]
}
