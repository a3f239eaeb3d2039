package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// courtesy is how long a gate is waited for at most. Whoever holds it may be
// stopped, and must not keep others from a lock that is free.
const courtesy = 500 * time.Millisecond

// Locker is an open file with a lock.
type Locker interface {
	// TryLock takes the lock if that is possible at once.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
	Close() error
}

// WaitFairly waits for a lock until ctx ends, so that many who share it, and
// relieve each other without a pause, cannot keep out one who wants it for
// himself: he closes the gate, another lock, while he waits, and they wait
// before it.
//
// open opens the gate; who shares the lock does not create it, so that there
// is none (fs.ErrNotExist) until somebody has had to wait.
func WaitFairly(ctx context.Context, exclusive bool, lock Locker, open func(create bool) (Locker, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	try := func() (bool, error) { return lock.TryLock(exclusive) }
	if exclusive {
		if ok, err := try(); ok || err != nil {
			return err
		}
	}
	gate, err := open(exclusive)
	if errors.Is(err, fs.ErrNotExist) {
		return Wait(ctx, try)
	}
	if err != nil {
		return fmt.Errorf("open gate: %w", err)
	}
	defer func() { _ = gate.Close() }()
	if err := pass(ctx, exclusive, gate); err != nil {
		return err
	}
	return Wait(ctx, try)
}

// pass goes through the gate, and closes it if exclusive. Who has waited there
// for long enough goes past it.
func pass(ctx context.Context, exclusive bool, gate Locker) error {
	brief, cancel := context.WithTimeout(ctx, courtesy)
	defer cancel()
	err := Wait(brief, func() (bool, error) { return gate.TryLock(exclusive) })
	switch {
	case err == nil && !exclusive:
		return gate.Unlock()
	case errors.Is(err, context.DeadlineExceeded):
		return ctx.Err()
	default:
		return err
	}
}
