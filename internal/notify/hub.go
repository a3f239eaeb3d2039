// Package notify implements eventlog.Notifier for the stores. A Hub publishes the
// changes of this process, and polls the storage for changes of other processes while it
// has a listener, and a while after.
package notify

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// Hub passes changes to listeners. All methods may be called concurrently.
type Hub struct {
	start func(publish func(session string)) Poller

	mu        sync.Mutex
	listeners map[*listener]struct{}
	run       *run        // nil until there is a listener, and long after the last one
	idle      *time.Timer // ends run; nil while there is a listener
	closed    bool

	pollers sync.WaitGroup // no poller begins once closed is set
}

// idleTime is how long a poller runs without a listener: a runner of agents listens once
// per turn, and a poller may need a connection of its own.
const idleTime = 10 * time.Second

// New returns a hub. While there is a listener, and 10 seconds after, one goroutine polls a
// Poller that start returns. If start is nil, every change is published.
func New(start func(publish func(session string)) Poller) *Hub {
	return &Hub{start: start, listeners: make(map[*listener]struct{})}
}

// maxPending bounds the ids that wait for a listener. More changes than that are "".
const maxPending = 1 << 14

// listener is a running call of Changes.
type listener struct {
	woken   chan struct{}
	ready   bool                // the poller has seen the state from which changes count
	pending map[string]struct{} // has "" alone, or other ids
	err     error
}

// Changes implements eventlog.Notifier. After closing is closed, the error is ErrClosed.
func (h *Hub) Changes(ctx context.Context, closing <-chan struct{}) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := ended(ctx, closing); err != nil {
			yield("", err)
			return
		}
		l := &listener{woken: make(chan struct{}, 1), pending: make(map[string]struct{})}
		h.join(l)
		defer h.leave(l)
		for {
			select {
			case <-l.woken:
			case <-closing:
			case <-ctx.Done():
			}
			err := ended(ctx, closing)
			sessions, failed := h.take(l)
			for i := 0; i < len(sessions) && err == nil; i++ {
				if !yield(sessions[i], nil) {
					return
				}
				err = ended(ctx, closing)
			}
			if err == nil {
				err = failed
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

func ended(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return eventlog.ErrClosed
	default:
		return ctx.Err()
	}
}

// Publish reports that a session may have changed; any session if session is "". The
// change must be visible to reads.
func (h *Hub) Publish(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.ready {
			l.add(session)
		}
	}
}

func (l *listener) add(session string) {
	if _, all := l.pending[""]; !all {
		if session == "" || len(l.pending) >= maxPending {
			clear(l.pending)
			session = ""
		}
		l.pending[session] = struct{}{}
	}
	l.wake()
}

func (l *listener) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// take removes and returns the pending ids.
func (h *Hub) take(l *listener) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sessions := slices.Sorted(maps.Keys(l.pending))
	clear(l.pending)
	return sessions, l.err
}

// join adds a listener. The first one starts the poller.
func (h *Hub) join(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = struct{}{}
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	if h.start != nil && h.run == nil && !h.closed {
		h.run = h.newRun()
	}
	if h.start == nil || h.run != nil && h.run.ready {
		l.begin()
	}
}

// begin reports that changes count from now on.
func (l *listener) begin() {
	if !l.ready {
		l.ready = true
		l.add("")
	}
}

// leave removes a listener. The poller ends if no other comes for a while.
func (h *Hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	if len(h.listeners) == 0 && h.run != nil {
		h.idle = time.AfterFunc(idleTime, h.endIdle)
	}
}

// endIdle ends the poller unless it has a listener.
func (h *Hub) endIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) == 0 && h.run != nil {
		h.run.stop()
		h.run = nil
	}
}

// Close ends the poller, and waits for it and for pollers that have been told to end. The caller has closed the channel closing of all
// calls of Changes, which ends them.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	if h.run != nil {
		h.run.stop()
		h.run = nil
	}
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	h.pollers.Wait()
}
