package storetest

import (
	"context"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// faulty is a store whose appends can be made to go wrong.
type faulty struct {
	eventlog.Store
	mu     sync.Mutex
	script []fault
}

// fault is what happens to one append.
type fault int

const (
	// storedUnknown: the lines are written and the outcome is said to be unknown.
	storedUnknown fault = iota
	// lostUnknown: nothing is written and the outcome is said to be unknown.
	lostUnknown
)

// Unwrap lets the abilities of the store underneath be found.
func (f *faulty) Unwrap() eventlog.Store { return f.Store }

// fail makes the next appends go wrong, in order.
func (f *faulty) fail(script ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, script...)
}

func (f *faulty) next() (fault, bool) {
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
func (f *faulty) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	fault, ok := f.next()
	if !ok {
		return f.Store.Append(ctx, session, expect, events, durable)
	}
	if fault == storedUnknown {
		if err := f.Store.Append(ctx, session, expect, events, durable); err != nil {
			return err
		}
	}
	return &eventlog.UnknownOutcomeError{Session: session, Head: expect, Cause: errInjected}
}

type injectedError struct{}

func (injectedError) Error() string { return "injected fault" }

var errInjected error = injectedError{}

// watchful counts what reaches the store underneath.
type watchful struct {
	eventlog.Store
	mu      sync.Mutex
	appends int
	durable []bool
	synced  []string // sessions
	refuses bool     // it fails to sync
}

// Unwrap lets the abilities of the store underneath be found.
func (w *watchful) Unwrap() eventlog.Store { return w.Store }

// Append implements Store.
func (w *watchful) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	w.mu.Lock()
	w.appends++
	w.durable = append(w.durable, durable)
	w.mu.Unlock()
	return w.Store.Append(ctx, session, expect, events, durable)
}

// Sync implements Syncer, whether or not the store underneath does.
func (w *watchful) Sync(ctx context.Context, session string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced = append(w.synced, session); w.refuses {
		return errInjected
	}
	if s, ok := eventlog.As[eventlog.Syncer](w.Store); ok {
		return s.Sync(ctx, session)
	}
	return nil
}
