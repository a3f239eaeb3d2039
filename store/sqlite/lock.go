package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

// Lock implements eventlog.Locker with a lock of the file S.db-lock, which the
// kernel releases when a process dies. A read-only store takes a shared lock if
// the file is there, and creates nothing.
//
// A caller that left while its write was under way gave its lock back before
// that was over. An exclusive lock therefore waits for the write transaction of
// that moment, too.
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
	unlock, err = s.locks.lock(ctx, exclusive)
	if err != nil || !exclusive {
		return ctx, unlock, err
	}
	if err := s.write(ctx, barrier{}, false); err != nil {
		unlock()
		return nil, nil, err
	}
	return ctx, unlock, nil
}

// barrier changes nothing: it has had the write lock, and so those before it
// are done.
type barrier struct{}

func (barrier) apply(*writer) error { return nil }

func (barrier) unknown(cause error) error { return cause }

// storeLock is a lock between goroutines in front of one between processes,
// so that only one of them polls. Who asks for it exclusively is not overtaken
// by later ones.
type storeLock struct {
	path  string
	limit time.Duration // of waiting for other processes; none if 0

	mu      sync.Mutex
	holders int // -1 is one that excludes the others
	waiting []*waiter
}

type waiter struct {
	exclusive bool
	admitted  chan struct{}
}

func (l *storeLock) lock(ctx context.Context, exclusive bool) (func(), error) {
	if err := l.enter(ctx, exclusive); err != nil {
		return nil, err
	}
	var release func()
	err := within(ctx, l.limit, func(ctx context.Context) (err error) {
		release, err = flock.Lock(ctx, l.path, exclusive, 0o600)
		return err
	})
	if err != nil {
		l.exit()
		return nil, err
	}
	return func() {
		release()
		l.exit()
	}, nil
}

func (l *storeLock) enter(ctx context.Context, exclusive bool) error {
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

// admit lets in whoever is next in line, as far as they go together.
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

func (l *storeLock) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders < 0 {
		l.holders = 0
	} else {
		l.holders--
	}
	l.admit()
}

// abandon takes w out of the line, or gives back what it was just given.
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
	l.exit()
}
