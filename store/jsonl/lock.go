package jsonl

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/lease"
)

const (
	lockName = ".lock"
	gateName = lockName + flock.GateSuffix
	// leaseName is the lock file of the leases. Where each lease has a file of its own,
	// the name begins with it.
	leaseName = ".lease"
)

// isLock reports whether name is a lock file of the store.
func isLock(name string) bool {
	return name == lockName || name == gateName || strings.HasPrefix(name, leaseName)
}

// Lock implements eventlog.Locker with a flock on <dir>/.lock. A waiting exclusive
// caller also locks <dir>/.lock-next, so that new shared callers wait for it, at
// most half a second. A read-only store takes a shared lock if the file exists, and creates
// nothing.
func (s *Store) Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	if err := s.beginCall("lock", s.dir); err != nil {
		return nil, nil, err
	}
	defer s.endCall()
	if s.opts.ReadOnly && exclusive {
		return nil, nil, fmt.Errorf("lock %q: %w", s.dir, eventlog.ErrReadOnly)
	}
	file, err := s.openLock()
	if s.opts.ReadOnly && isAbsent(err) {
		return ctx, func() {}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open store lock: %w", err)
	}
	if err := flock.WaitFairly(ctx, exclusive, s.waitingFile(file), s.openGate); err != nil {
		_ = file.Close()
		return nil, nil, fmt.Errorf("lock %s: %w", s.path(lockName), err)
	}
	if !exclusive {
		return ctx, func() { _ = file.Close() }, nil
	}
	s.saved.begin()
	return ctx, func() {
		s.saved.end()
		_ = file.Close()
	}, nil
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

// openGate opens the second lock file, which an exclusive caller locks while it waits.
func (s *Store) openGate(create bool) (flock.Locker, error) {
	flag := os.O_RDONLY
	if create {
		flag = os.O_RDWR | os.O_CREATE
	}
	gate, err := s.fs.Open(gateName, flag)
	return gate, err
}

// waitingFile is a file whose TryLock fails once the store is closed or
// Options.LockTimeout has passed.
type waitingFile struct {
	File
	store *Store
	since time.Time
}

func (s *Store) waitingFile(file File) waitingFile { return waitingFile{file, s, time.Now()} }

func (w waitingFile) TryLock(exclusive bool) (bool, error) {
	if w.store.isClosed() {
		return false, eventlog.ErrClosed
	}
	ok, err := w.File.TryLock(exclusive)
	if limit := w.store.opts.LockTimeout; !ok && err == nil && limit > 0 && time.Since(w.since) >= limit {
		return false, fmt.Errorf("%w for %v", eventlog.ErrLocked, limit)
	}
	return ok, err
}

var _ eventlog.Leaser = (*Store)(nil)

// Lease implements eventlog.Leaser with a lock on a byte of <dir>/.lease, and with a file
// <dir>/.lease-<hash> on systems other than Linux.
func (s *Store) Lease(ctx context.Context, name string) (eventlog.Lease, error) {
	if err := s.beginChange("lease", name); err != nil {
		return nil, err
	}
	defer s.endCall()
	if err := s.fs.MakeRoot(); err != nil {
		return nil, fmt.Errorf("lease %q: %w", name, err)
	}
	return s.leases.Lease(ctx, name)
}

// Leased implements eventlog.Leaser. It creates nothing.
func (s *Store) Leased(ctx context.Context, name string) (bool, error) {
	if err := s.beginCall("inspect lease", name); err != nil {
		return false, err
	}
	defer s.endCall()
	return s.leases.Leased(ctx, name)
}

// newLeases returns an empty table of leases. It does no I/O.
func (s *Store) newLeases() *lease.Table {
	if s.fs.Path(leaseName) == "" {
		return new(lease.Memory).Table()
	}
	return lease.Files(func() (string, error) {
		_, err := s.fs.Stat(".") // ErrMoved if the folder has moved
		return s.fs.Path(leaseName), err
	}, s.opts.ReadOnly)
}
