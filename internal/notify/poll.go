package notify

import (
	"context"
	"time"
)

// Poller finds changes of other processes. One goroutine uses it.
type Poller interface {
	// Poll publishes the changes since the call before. The first call remembers the
	// state; its publications are ignored.
	Poll(ctx context.Context) (Pace, error)
	// Close releases the resources of the poller.
	Close()
}

// Pace says when to poll again.
type Pace int

const (
	// Idle: nothing has changed. The pause doubles.
	Idle Pace = iota
	// Busy: something has changed. The pause is short.
	Busy
	// Backstop: the poller learns of changes by itself, and publishes them at once. Polls
	// are rare, in case that it misses one.
	Backstop
)

// The pauses between two polls. They also depend on the time that a poll takes: polls
// take less than a tenth of a processor after changes, and a fiftieth while nothing
// changes.
const (
	shortPause    = 2 * time.Millisecond
	longPause     = 100 * time.Millisecond
	backstopPause = 10 * time.Second
	busyShare     = 10
	idleShare     = 50
)

// pauseAfter is the pause after a poll that took a time, and after an earlier pause.
func pauseAfter(pace Pace, took, earlier time.Duration) time.Duration {
	switch pace {
	case Busy:
		return max(shortPause, busyShare*took)
	case Backstop:
		return max(backstopPause, idleShare*took)
	default:
		longest := max(longPause, idleShare*took)
		return min(max(shortPause, 2*earlier), longest)
	}
}

// run is a running poller.
type run struct {
	stop  context.CancelFunc
	ready bool // the first poll is done; guarded by Hub.mu
}

// newRun starts a poller.
func (h *Hub) newRun() *run {
	ctx, stop := context.WithCancel(context.Background())
	r := &run{stop: stop}
	h.pollers.Go(func() {
		defer stop()
		poller := h.start(h.Publish)
		defer poller.Close()
		h.poll(ctx, r, poller)
	})
	return r
}

// poll polls until ctx ends or a poll fails.
func (h *Hub) poll(ctx context.Context, r *run, poller Poller) {
	for pause := time.Duration(0); ; {
		start := time.Now()
		pace, err := poller.Poll(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.fail(r, err)
			return
		}
		h.begin(r)
		pause = pauseAfter(pace, time.Since(start), pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// begin tells the listeners of the first poll that changes count from now on.
func (h *Hub) begin(r *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.ready || h.run != r {
		return
	}
	r.ready = true
	for l := range h.listeners {
		l.begin()
	}
}

// fail ends all listeners with an error.
func (h *Hub) fail(r *run, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != r {
		return
	}
	h.run = nil
	for l := range h.listeners {
		l.err = err
		l.wake()
	}
}
