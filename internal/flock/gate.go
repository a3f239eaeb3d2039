package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// gateTimeout bounds the wait for a gate. The gate's holder may be a stopped process,
// which must not block a free lock for others.
const gateTimeout = 500 * time.Millisecond

// Locker is an open file with a lock.
type Locker interface {
	// TryLock takes the lock, or returns false if another open file has it.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
	Close() error
}

// WaitFairly waits for a lock until ctx ends. Without it, many shared callers that
// overlap could keep an exclusive caller waiting forever. An exclusive caller that must
// wait holds a second lock, the gate; new shared callers pass the gate first, and wait
// there for at most half a second.
//
// open opens the gate. A shared caller does not create it: it gets fs.ErrNotExist until
// an exclusive caller has had to wait.
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
	if err := passGate(ctx, exclusive, gate); err != nil {
		return err
	}
	return Wait(ctx, try)
}

// passGate waits at the gate. An exclusive caller keeps the gate locked. After
// gateTimeout it returns without the gate.
func passGate(ctx context.Context, exclusive bool, gate Locker) error {
	brief, cancel := context.WithTimeout(ctx, gateTimeout)
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
