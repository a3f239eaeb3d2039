package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

// Lock implements eventlog.Locker with a lock on the file S.db-lock. The kernel
// releases the lock when the process dies. A read-only store takes a shared lock if
// the lock file exists and creates nothing.
//
// A caller may release its lock while its write is still running, because its context
// ended. An exclusive lock therefore also waits for the running write transaction.
func (s *Store) Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	if s.options.ReadOnly && exclusive {
		return nil, nil, eventlog.ErrReadOnly
	}
	if err := s.open(ctx); err != nil {
		return nil, nil, err
	}
	if s.options.ReadOnly {
		if _, err := os.Stat(s.locks.path); errors.Is(err, fs.ErrNotExist) {
			return ctx, func() {}, nil
		}
	}
	err = s.untilClose(ctx, func(ctx context.Context) error {
		unlock, err = s.locks.lock(ctx, exclusive)
		return err
	})
	if err != nil || !exclusive {
		return ctx, unlock, err
	}
	if err := s.write(ctx, barrier{}, false); err != nil {
		unlock()
		return nil, nil, err
	}
	return ctx, unlock, nil
}

// barrier changes nothing. When it returns, all earlier transactions have ended.
type barrier struct{}

func (barrier) apply(*writer) error { return nil }

func (barrier) unknown(cause error) error { return cause }

// Lease implements eventlog.Leaser with a lock on a byte of the file S.db-lease, and with
// a file S.db-lease-<hash> on systems other than Linux.
func (s *Store) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	if s.options.ReadOnly {
		return nil, fmt.Errorf("lease %q: %w", name, eventlog.ErrReadOnly)
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.place.check(); err != nil {
		return nil, fmt.Errorf("lease %q: %w", name, err)
	}
	return s.leases.Lease(ctx, name)
}

// Leased implements eventlog.Leaser. It creates nothing.
func (s *Store) Leased(ctx context.Context, name string) (bool, error) {
	return s.leases.Leased(ctx, name)
}

// storeLock is a lock between goroutines and, below it, a file lock between processes.
// Only one goroutine polls the file lock. Waiters enter in order: a shared lock does
// not overtake an exclusive one.
type storeLock struct {
	path  string
	limit time.Duration // longest wait for other processes; 0 is no limit

	mu      sync.Mutex
	holders int // -1 is one exclusive holder
	waiting []*waiter
}

type waiter struct {
	exclusive bool
	admitted  chan struct{}
}

func (l *storeLock) lock(ctx context.Context, exclusive bool) (func(), error) {
	if err := l.join(ctx, exclusive); err != nil {
		return nil, err
	}
	var release func()
	err := withTimeout(ctx, l.limit, func(ctx context.Context) (err error) {
		release, err = flock.Lock(ctx, l.path, exclusive, 0o600)
		return err
	})
	if err != nil {
		l.leave()
		return nil, err
	}
	return func() {
		release()
		l.leave()
	}, nil
}

func (l *storeLock) join(ctx context.Context, exclusive bool) error {
	w := &waiter{exclusive: exclusive, admitted: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.admit()
	l.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
		l.abandon(w)
		return ctx.Err()
	}
}

// admit admits waiters in order, as long as the next one is compatible with the
// holders.
func (l *storeLock) admit() {
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		if l.holders < 0 || w.exclusive && l.holders > 0 {
			return
		}
		l.waiting = l.waiting[1:]
		if w.exclusive {
			l.holders = -1
		} else {
			l.holders++
		}
		close(w.admitted)
	}
}

func (l *storeLock) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders < 0 {
		l.holders = 0
	} else {
		l.holders--
	}
	l.admit()
}

// abandon removes w from the waiters. If w was admitted in the meantime, abandon
// releases the lock.
func (l *storeLock) abandon(w *waiter) {
	l.mu.Lock()
	for i, other := range l.waiting {
		if other == w {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			l.admit()
			l.mu.Unlock()
			return
		}
	}
	l.mu.Unlock()
	l.leave()
}
