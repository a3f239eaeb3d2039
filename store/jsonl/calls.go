package jsonl

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/convlog/convlog/eventlog"
)

// calls counts the running calls of a store, and the open store itself. The last one
// to end closes the FS, so no call ever works on a closed folder. Close does not wait
// for all calls: a call may be inside a callback of its caller, and the callback may be
// the caller of Close.
type calls struct{ running atomic.Int64 }

// begin adds a call, unless the last one has ended.
func (c *calls) begin() bool {
	for {
		n := c.running.Load()
		if n == 0 {
			return false
		}
		if c.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// beginCall begins a call of the store, or returns ErrClosed. After success the caller
// must call endCall.
func (s *Store) beginCall(verb, name string) error {
	if err := s.checkOpen(verb, name); err != nil {
		return err
	}
	if !s.calls.begin() {
		return closedError(verb, name)
	}
	return nil
}

// beginChange is beginCall for a call that changes files.
func (s *Store) beginChange(verb, name string) error {
	if s.opts.ReadOnly {
		return fmt.Errorf("%s %q: %w", verb, name, eventlog.ErrReadOnly)
	}
	return s.beginCall(verb, name)
}

// endCall ends a call. The last call closes the FS.
func (s *Store) endCall() error {
	if s.calls.running.Add(-1) > 0 {
		return nil
	}
	return s.fs.Close()
}

// checkOpen returns ErrClosed after Close.
func (s *Store) checkOpen(verb, name string) error {
	if s.isClosed() {
		return closedError(verb, name)
	}
	return nil
}

func closedError(verb, name string) error {
	return fmt.Errorf("%s %q: %w", verb, name, eventlog.ErrClosed)
}

// alive returns the error of an ended ctx, or ErrClosed after Close. Long calls check
// it at each step.
func (s *Store) alive(ctx context.Context) error {
	if s.isClosed() {
		return eventlog.ErrClosed
	}
	return ctx.Err()
}
