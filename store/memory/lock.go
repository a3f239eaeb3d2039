package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// Lock implements eventlog.Locker. The lock lasts until unlock.
func (s *Store) Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	if err := s.usable(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.data.lock.take(ctx, s.closing, exclusive); err != nil {
		return nil, nil, err
	}
	return ctx, sync.OnceFunc(func() { s.data.lock.release(exclusive) }), nil
}

// Lease implements eventlog.Leaser. The lease excludes the other handles on the data.
func (s *Store) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	if s.readOnly {
		return nil, fmt.Errorf("lease %q: %w", name, eventlog.ErrReadOnly)
	}
	return s.leases.Lease(ctx, name)
}

// Leased implements eventlog.Leaser.
func (s *Store) Leased(ctx context.Context, name string) (bool, error) {
	return s.leases.Leased(ctx, name)
}

// storeLock is a lock with many shared holders or one exclusive holder. A waiter stops
// when its context ends or its handle is closed.
type storeLock struct {
	mu        sync.Mutex
	shared    int
	exclusive bool
	changed   chan struct{} // closed and replaced at each release
}

func newStoreLock() *storeLock { return &storeLock{changed: make(chan struct{})} }

func (l *storeLock) take(ctx context.Context, closing <-chan struct{}, exclusive bool) error {
	for {
		ok, changed := l.try(exclusive)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-closing:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *storeLock) try(exclusive bool) (ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.exclusive, exclusive && l.shared > 0:
		return false, l.changed
	case exclusive:
		l.exclusive = true
	default:
		l.shared++
	}
	return true, nil
}

func (l *storeLock) release(exclusive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if exclusive {
		l.exclusive = false
	} else {
		l.shared--
	}
	close(l.changed)
	l.changed = make(chan struct{})
}
