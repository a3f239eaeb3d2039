package eventlog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// errHeld: what erases would wait for itself.
var errHeld = errors.New("nothing is erased while it is held")

// Hold runs do while nothing is erased from the store: redactions, removals,
// garbage collections and repairs in place, of any process, wait until do is
// over. What do reads and what it writes of that therefore goes together. Hold
// waits for those that are under way, honouring ctx. Within do its own context
// must be given to the methods of the log, and those that erase are refused.
// A store that has no lock is not held.
func (l *Log) Hold(ctx context.Context, do func(ctx context.Context) error) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	outer, _ := ctx.Value(heldKey{}).(*held)
	return do(context.WithValue(ctx, heldKey{}, &held{l.store, outer}))
}

type heldKey struct{}

// held is the stores that a context holds.
type held struct {
	store Store
	outer *held
}

// holds reports whether ctx holds the store. Locking it again might wait for one
// who waits for the first lock to end.
func (l *Log) holds(ctx context.Context) bool {
	for h, _ := ctx.Value(heldKey{}).(*held); h != nil; h = h.outer {
		if t := reflect.TypeOf(l.store); t == reflect.TypeOf(h.store) && t.Comparable() && l.store == h.store {
			return true
		}
	}
	return false
}

// lockStore takes the store lock, if the store has one and ctx does not hold it.
func (l *Log) lockStore(ctx context.Context, exclusive bool) (unlock func(), err error) {
	if l.holds(ctx) {
		if exclusive {
			return nil, fmt.Errorf("lock store: %w", errHeld)
		}
		return func() {}, nil
	}
	locker, ok := As[Locker](l.store)
	if !ok {
		return func() {}, nil
	}
	unlock, err = locker.Lock(ctx, exclusive)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return unlock, nil
}
