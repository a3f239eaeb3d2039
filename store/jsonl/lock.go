package jsonl

import (
	"context"
	"fmt"
	"os"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

const (
	lockName = ".lock"
	gateName = lockName + flock.GateSuffix
)

// Lock implements eventlog.Locker with a flock on <dir>/.lock. A read-only
// store takes a shared lock if the file is there, and creates nothing. Those
// who share the lock do not keep out one who wants it for himself, who closes
// the gate <dir>/.lock-next if he has to wait.
func (s *Store) Lock(ctx context.Context, exclusive bool) (unlock func(), err error) {
	if err := s.usable("lock", s.dir); err != nil {
		return nil, err
	}
	if s.opts.ReadOnly && exclusive {
		return nil, fmt.Errorf("lock %q: %w", s.dir, eventlog.ErrReadOnly)
	}
	file, err := s.openLock()
	if s.opts.ReadOnly && isAbsent(err) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open store lock: %w", err)
	}
	if err := flock.WaitFairly(ctx, exclusive, whileOpen{file, s}, s.openGate); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", s.path(lockName), err)
	}
	return func() { _ = file.Close() }, nil
}

func (s *Store) openLock() (File, error) {
	if s.opts.ReadOnly {
		return s.fs.Open(lockName, os.O_RDONLY)
	}
	if err := s.fs.MakeRoot(); err != nil {
		return nil, err
	}
	return s.fs.Open(lockName, os.O_RDWR|os.O_CREATE)
}

// openGate opens what keeps others from sharing the lock while somebody waits
// for it.
func (s *Store) openGate(create bool) (flock.Locker, error) {
	flag := os.O_RDONLY
	if create {
		flag = os.O_RDWR | os.O_CREATE
	}
	gate, err := s.fs.Open(gateName, flag)
	return gate, err
}

// whileOpen is a file whose lock is waited for until the store is closed.
type whileOpen struct {
	File
	store *Store
}

func (w whileOpen) TryLock(exclusive bool) (bool, error) {
	if w.store.isClosed() {
		return false, eventlog.ErrClosed
	}
	return w.File.TryLock(exclusive)
}
