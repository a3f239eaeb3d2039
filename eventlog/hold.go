package eventlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// errHeld: an erasure inside Hold would wait for itself.
var errHeld = errors.New("the store cannot be erased from while it is held")

// Hold runs fn under the shared store lock. No process redacts, removes, collects
// or repairs in place until fn returns, so fn can read data and append events that
// refer to it. Hold waits for running erasures and honours ctx. Give the context
// that fn gets to the methods of the log; erasing under it is refused. A store
// without a lock is not held.
func (l *Log) Hold(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	held, unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	return fn(held)
}

type heldKey struct{}

// heldStore is a store that a context holds the lock of.
type heldStore struct {
	store Store
	outer *heldStore
}

// holds reports whether ctx holds the store lock. Taking it again could wait for an
// eraser that waits for the first lock to end.
func (l *Log) holds(ctx context.Context) bool {
	for h, _ := ctx.Value(heldKey{}).(*heldStore); h != nil; h = h.outer {
		if t := reflect.TypeOf(l.store); t == reflect.TypeOf(h.store) && t.Comparable() && l.store == h.store {
			return true
		}
	}
	return false
}

// lockStore takes the store lock, if the store has one and ctx does not hold it.
// The caller works under held, which ends when the lock is lost.
func (l *Log) lockStore(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	if l.holds(ctx) {
		if exclusive {
			return nil, nil, fmt.Errorf("lock store: %w", errHeld)
		}
		return ctx, func() {}, nil
	}
	locker, ok := As[Locker](l.store)
	if !ok {
		return ctx, func() {}, nil
	}
	held, unlock, err = locker.Lock(ctx, exclusive)
	if err != nil {
		return nil, nil, fmt.Errorf("lock store: %w", err)
	}
	outer, _ := held.Value(heldKey{}).(*heldStore)
	return context.WithValue(held, heldKey{}, &heldStore{l.store, outer}), unlock, nil
}
