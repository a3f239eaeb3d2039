package suite

import (
	"context"
	"iter"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// faulty is a store whose appends can be made to go wrong.
type FaultyStore struct {
	eventlog.Store
	mu     sync.Mutex
	script []Fault
}

// fault is what happens to one append.
type Fault int

const (
	// storedUnknown: the lines are written and the outcome is said to be unknown.
	StoredUnknown Fault = iota
	// lostUnknown: nothing is written and the outcome is said to be unknown.
	LostUnknown
)

// Unwrap lets the abilities of the store underneath be found.
func (f *FaultyStore) Unwrap() eventlog.Store { return f.Store }

// fail makes the next appends go wrong, in order.
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

// Append implements Store.
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

// watchful counts what reaches the store underneath.
type CountingStore struct {
	eventlog.Store
	mu       sync.Mutex
	appends  int
	Durable  []bool
	Synced   []string // sessions
	FailSync bool     // it fails to sync
}

// Unwrap lets the abilities of the store underneath be found.
func (w *CountingStore) Unwrap() eventlog.Store { return w.Store }

// Append implements Store.
func (w *CountingStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	w.mu.Lock()
	w.appends++
	w.Durable = append(w.Durable, durable)
	w.mu.Unlock()
	return w.Store.Append(ctx, session, expect, events, durable)
}

// Sync implements Syncer, whether or not the store underneath does.
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

// bare hides the abilities of a store.
type BareStore struct{ eventlog.Store }

// sequence yields events.
func Sequence(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}
}
