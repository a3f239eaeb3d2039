package eventlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/convlog/convlog/event"
)

// errInsideHold: an erasure inside Hold would wait for itself.
var errInsideHold = errors.New("an erasure is not possible inside Hold")

// Hold runs fn under the shared store lock. Until fn returns, no process redacts,
// removes, collects or repairs in place: fn can read data and append events that refer
// to it. Hold waits for running erasures and honours ctx. fn passes its own context to
// the methods of the log; an erasure with that context fails. If the store has no
// lock, Hold only runs fn.
func (l *Log) Hold(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: the function of Hold", event.ErrNilArgument)
	}
	return l.locked(ctx, false, fn)
}

// locked runs fn under the store lock.
func (l *Log) locked(ctx context.Context, exclusive bool, fn func(ctx context.Context) error) error {
	locked, unlock, err := l.lockStore(ctx, exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	return lockLost(locked, fn(locked))
}

// lockLost is err, or a lockLostError if the work ended because its lock was lost.
func lockLost(locked context.Context, err error) error {
	if cause := context.Cause(locked); errors.Is(err, context.Canceled) && errors.Is(cause, ErrLockLost) {
		return &lockLostError{cause, err}
	}
	return err
}

// lockLostError is the error of work whose lock was lost. It matches all that err
// matches, except context.Canceled: the caller has canceled nothing.
type lockLostError struct {
	cause error // why the lock was lost
	err   error // of the work
}

func (e *lockLostError) Error() string { return fmt.Sprintf("%v: %v", e.cause, e.err) }

func (e *lockLostError) Unwrap() error { return e.cause }

func (e *lockLostError) Is(target error) bool {
	return target != context.Canceled && errors.Is(e.err, target)
}

func (e *lockLostError) As(target any) bool { return errors.As(e.err, target) }

type storeLockKey struct{}

// storeLock is the lock of a store, in a context. outer is the lock of another store.
type storeLock struct {
	store Store
	outer *storeLock
}

// holds reports whether ctx holds the store lock. A second lock could wait for an
// eraser that waits for the end of the first lock.
func (l *Log) holds(ctx context.Context) bool {
	for h, _ := ctx.Value(storeLockKey{}).(*storeLock); h != nil; h = h.outer {
		if t := reflect.TypeOf(l.store); t == reflect.TypeOf(h.store) && t.Comparable() && l.store == h.store {
			return true
		}
	}
	return false
}

// lockStore takes the store lock, if the store has one and ctx does not hold it. The
// caller works under the context locked, which ends if the lock is lost.
func (l *Log) lockStore(ctx context.Context, exclusive bool) (locked context.Context, unlock func(), err error) {
	if l.holds(ctx) {
		if exclusive {
			return nil, nil, fmt.Errorf("lock store: %w", errInsideHold)
		}
		return ctx, func() {}, nil
	}
	locker, ok := As[Locker](l.store)
	if !ok {
		return ctx, func() {}, nil
	}
	locked, unlock, err = locker.Lock(ctx, exclusive)
	if err != nil {
		return nil, nil, fmt.Errorf("lock store: %w", err)
	}
	outer, _ := locked.Value(storeLockKey{}).(*storeLock)
	return context.WithValue(locked, storeLockKey{}, &storeLock{l.store, outer}), unlock, nil
}
