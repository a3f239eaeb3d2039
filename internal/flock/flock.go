// Package flock waits for advisory locks of open files: flock(2) on Unix, LockFileEx on
// Windows. A lock belongs to the open file, not to the process: two opens of one file in one
// process exclude each other. The kernel releases the locks of a process that dies. Network
// file systems are not supported.
package flock

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/convlog/convlog/internal/regular"
)

// The pause between two tries grows from shortestPause to longestPause.
const (
	shortestPause = 200 * time.Microsecond
	longestPause  = 20 * time.Millisecond
)

// Lock opens path, creates it with perm if it is missing, and waits for its lock until
// ctx ends. Call unlock exactly once. The file stays, because removing a lock file
// could let two holders in.
//
// Shared callers cannot starve an exclusive one (see WaitFairly). A waiting exclusive
// caller creates a second file, path plus GateSuffix, which also stays.
func Lock(ctx context.Context, path string, exclusive bool, perm os.FileMode) (unlock func(), err error) {
	f, err := regular.Open(path, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	gate := func(create bool) (Locker, error) {
		flag := os.O_RDWR
		if create {
			flag |= os.O_CREATE
		}
		gate, err := regular.Open(path+GateSuffix, flag, perm)
		return file{gate}, err
	}
	if err := WaitFairly(ctx, exclusive, file{f}, gate); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// GateSuffix is the suffix of the gate's file name. See WaitFairly.
const GateSuffix = "-next"

// file implements Locker.
type file struct{ *os.File }

func (f file) TryLock(exclusive bool) (bool, error) { return Try(int(f.Fd()), exclusive) }

func (f file) Unlock() error { return Unlock(int(f.Fd())) }

// Wait calls try with growing pauses until it returns true or an error, or ctx ends. If
// ctx has ended already, it does not call try.
func Wait(ctx context.Context, try func() (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		if ok, err := try(); ok || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
