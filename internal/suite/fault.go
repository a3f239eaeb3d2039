package suite

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// FaultyStore is a store whose appends can fail on demand.
type FaultyStore struct {
	eventlog.Store
	mu     sync.Mutex
	script []Fault
}

// Fault is the outcome of one append.
type Fault int

const (
	// StoredUnknown writes the lines and returns an unknown outcome.
	StoredUnknown Fault = iota
	// LostUnknown writes nothing and returns an unknown outcome.
	LostUnknown
)

// Unwrap returns the store under the FaultyStore, so that callers find its optional
// interfaces.
func (f *FaultyStore) Unwrap() eventlog.Store { return f.Store }

// Fail makes the next appends fail, in order.
func (f *FaultyStore) Fail(script ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, script...)
}

func (f *FaultyStore) next() (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.script) == 0 {
		return 0, false
	}
	first := f.script[0]
	f.script = f.script[1:]
	return first, true
}

// Append implements eventlog.Store.
func (f *FaultyStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	fault, ok := f.next()
	if !ok {
		return f.Store.Append(ctx, session, expect, events, durable)
	}
	if fault == StoredUnknown {
		if err := f.Store.Append(ctx, session, expect, events, durable); err != nil {
			return err
		}
	}
	return &eventlog.UnknownOutcomeError{Session: session, Head: expect, Cause: ErrInjected}
}

type injectedError struct{}

func (injectedError) Error() string { return "injected fault" }

var ErrInjected error = injectedError{}

// CountingStore records the calls of Append, Sessions and Sync.
type CountingStore struct {
	eventlog.Store
	mu       sync.Mutex
	Durable  []bool // per append
	Listings int
	Synced   []string // sessions
	FailSync bool     // make Sync fail
}

// Unwrap returns the store under the CountingStore, so that callers find its optional
// interfaces.
func (w *CountingStore) Unwrap() eventlog.Store { return w.Store }

// Append implements eventlog.Store.
func (w *CountingStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	w.mu.Lock()
	w.Durable = append(w.Durable, durable)
	w.mu.Unlock()
	return w.Store.Append(ctx, session, expect, events, durable)
}

// Sessions implements eventlog.Store.
func (w *CountingStore) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	w.mu.Lock()
	w.Listings++
	w.mu.Unlock()
	return w.Store.Sessions(ctx)
}

// Sync implements eventlog.Syncer, even if the store under it does not.
func (w *CountingStore) Sync(ctx context.Context, session string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Synced = append(w.Synced, session); w.FailSync {
		return ErrInjected
	}
	if s, ok := eventlog.As[eventlog.Syncer](w.Store); ok {
		return s.Sync(ctx, session)
	}
	return nil
}

// OrdersAppends implements eventlog.Syncer, as the store under it does.
func (w *CountingStore) OrdersAppends() bool {
	s, ok := eventlog.As[eventlog.Syncer](w.Store)
	return ok && s.OrdersAppends()
}

// LimitedStore is a store that takes no append over Max bytes.
type LimitedStore struct {
	eventlog.Store
	Max int
}

// Unwrap returns the store under the LimitedStore.
func (s LimitedStore) Unwrap() eventlog.Store { return s.Store }

// MaxAppend implements eventlog.Limiter.
func (s LimitedStore) MaxAppend(context.Context) (int, error) { return s.Max, nil }

// Append implements eventlog.Store.
func (s LimitedStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	size := 0
	for i := range events {
		size += len(events[i].Line()) + 1
	}
	if size > s.Max {
		return fmt.Errorf("an append of %d bytes: %w", size, ErrInjected)
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

// BareStore hides the optional interfaces of a store.
type BareStore struct{ eventlog.Store }

// Sequence yields events.
func Sequence(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}
}
