package jsonl

import (
	"context"
	"fmt"
	"os"

	"github.com/convlog/convlog/eventlog"
)

const lockName = ".lock"

// Lock implements eventlog.Locker with a flock on <dir>/.lock. A read-only
// store takes a shared lock if the file is there, and creates nothing.
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
	if err := s.await(ctx, file, exclusive); err != nil {
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
