package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/convlog/convlog/event"
)

// errHeadVanished ends a watcher whose last seen event does not exist any more.
var errHeadVanished = errors.New("an event that was seen has vanished")

// WatchOptions configure Watch.
type WatchOptions struct {
	// Wait waits for a missing session to begin, instead of ending with ErrNotFound.
	Wait bool
}

// Watch yields the session's events from seq from on, then each new one as any
// process appends it, in order, without a gap or a duplicate, until ctx ends: the
// sequence then ends with ctx's error. From 0 or 1 is the whole lineage; one past
// the head waits for the next event. At most one WatchOptions is used.
//
// A slow watcher reads from the store: no event is dropped. The sequence ends with
// ErrNotFound if the session is missing or removed, with a *CorruptError if the
// last seen event has vanished, and with ErrClosed if the log is closed.
func (l *Log) Watch(ctx context.Context, session string, from int64, opts ...WatchOptions) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.readable(ctx, session); err != nil {
			yield(event.Event{}, err)
			return
		}
		h := l.acquire(session)
		defer l.release(h)
		w := h.watch.join()
		defer h.watch.leave(w)
		leave := l.poll.join(h)
		defer leave()
		c := cursor{log: l, session: session, next: max(from, 1)}
		err := c.start(ctx)
		for len(opts) > 0 && opts[0].Wait && errors.Is(err, ErrNotFound) {
			if err = l.wait(ctx, w); err == nil {
				err = c.start(ctx)
			}
		}
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		l.follow(ctx, h, w, &c, yield)
	}
}

// wait waits until the watcher is woken.
func (l *Log) wait(ctx context.Context, w *watcher) error {
	select {
	case <-w.local:
	case <-w.foreign:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return ErrClosed
	}
	return nil
}

// follow yields stored events, then sleeps until there may be more.
func (l *Log) follow(ctx context.Context, h *hotSession, w *watcher, c *cursor, yield func(event.Event, error) bool) {
	behind := true // the store may hold events that the ring does not
	for {
		for fresh := h.watch.after(c.seen, c.next); len(fresh) > 0; fresh = h.watch.after(c.seen, c.next) {
			for _, e := range fresh {
				if err := l.resolve(ctx, &e); !c.pass(e, err, yield) {
					return
				}
			}
		}
		if behind && !c.catchUp(ctx, yield) {
			return
		}
		select {
		case <-w.local:
			w.gather()
			behind = !h.watch.holds(c.seen, c.next)
		case <-w.foreign:
			behind = true
		case <-ctx.Done():
			yield(event.Event{}, ctx.Err())
			return
		case <-l.done:
			yield(event.Event{}, ErrClosed)
			return
		}
	}
}

// cursor is a watcher's place in the log.
type cursor struct {
	log     *Log
	session string
	next    int64
	seen    event.Head // the event at next-1, once it was yielded or found at the start
}

// start makes sure that the session exists, and notes the event before next if
// next is past the head.
func (c *cursor) start(ctx context.Context) error {
	head, err := c.log.Head(ctx, c.session)
	if err != nil {
		return err
	}
	if c.next == head.Seq+1 {
		c.seen = head
	}
	return nil
}

// catchUp yields the stored events from next on, after making sure that the last
// seen event is still stored.
func (c *cursor) catchUp(ctx context.Context, yield func(event.Event, error) bool) bool {
	from := c.next
	if c.seen.Seq > 0 {
		from = c.seen.Seq
	}
	found := c.seen.Seq == 0
	for e, err := range c.log.Read(ctx, c.session, From(from)) {
		if err == nil && e.Seq == c.seen.Seq {
			if e.Hash() != c.seen.Hash {
				break
			}
			found = true
			continue
		}
		if !c.pass(e, err, yield) {
			return false
		}
		found = true
	}
	if !found {
		return yield(event.Event{}, damaged(c.session, c.seen.Seq, errHeadVanished)) && false
	}
	return true
}

// pass yields one event, and reports whether to continue.
func (c *cursor) pass(e event.Event, err error, yield func(event.Event, error) bool) bool {
	if err != nil {
		return yield(event.Event{}, fmt.Errorf("watch session %q: %w", c.session, err)) && false
	}
	if e.Seq < c.next {
		return true
	}
	c.next, c.seen = e.Seq+1, e.Head()
	return yield(e, nil)
}

// wakeWatchers makes the session's watchers read the store again.
func (l *Log) wakeWatchers(session string) {
	if h := l.findHot(session); h != nil {
		h.watch.wakeAll(true)
	}
}

// watchers are the watchers of one session in this process, and the newest events
// appended while there were any.
type watchers struct {
	mu   sync.Mutex
	all  []*watcher
	ring []event.Event // contiguous, newest last
}

// ringSize bounds how many events are kept for watchers.
const ringSize = 256

// watcher is woken through channels that hold one wake-up each.
type watcher struct {
	local   chan struct{} // the ring has grown
	foreign chan struct{} // the store may have changed otherwise
	woken   time.Time
}

// gatherTime is how long a watcher lets events gather while they stream in.
const gatherTime = 100 * time.Microsecond

// gather waits a moment if the last wake-up was just now: waking a watcher for
// every event would cost the appending side more than the append.
func (w *watcher) gather() {
	if time.Since(w.woken) < 10*gatherTime {
		time.Sleep(gatherTime)
	}
	w.woken = time.Now()
}

func (ws *watchers) join() *watcher {
	w := &watcher{local: make(chan struct{}, 1), foreign: make(chan struct{}, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
	return w
}

func (ws *watchers) leave(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = slices.DeleteFunc(ws.all, func(other *watcher) bool { return other == w })
	if len(ws.all) == 0 {
		ws.ring = nil
	}
}

// publish gives stored events to the watchers. It reports whether it kept them.
func (ws *watchers) publish(events []event.Event) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.all) == 0 {
		return false
	}
	if n := len(ws.ring); n > 0 && ws.ring[n-1].Seq+1 != events[0].Seq {
		ws.ring = ws.ring[:0]
	}
	if cap(ws.ring) == 0 {
		ws.ring = make([]event.Event, 0, 2*ringSize)
	}
	if len(ws.ring)+len(events) > cap(ws.ring) && len(ws.ring) > ringSize {
		ws.ring = append(ws.ring[:0], ws.ring[len(ws.ring)-ringSize:]...)
	}
	ws.ring = append(ws.ring, events...)
	for _, w := range ws.all {
		wake(w.local)
	}
	return true
}

// wakeAll makes the watchers read the store. forget drops the ring first.
func (ws *watchers) wakeAll(forget bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if forget {
		ws.ring = nil
	}
	for _, w := range ws.all {
		wake(w.foreign)
	}
}

// after copies the events from seq next on, if the ring continues from seen.
func (ws *watchers) after(seen event.Head, next int64) []event.Event {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	i := ws.index(seen, next)
	if i < 0 || i >= len(ws.ring) {
		return nil
	}
	return slices.Clone(ws.ring[i:min(i+64, len(ws.ring))])
}

// holds reports whether the ring continues from seen, so that the store need not be
// read.
func (ws *watchers) holds(seen event.Head, next int64) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.index(seen, next) >= 0
}

// index is the place of event next in the ring; -1 if the ring does not continue
// from seen.
func (ws *watchers) index(seen event.Head, next int64) int {
	if len(ws.ring) == 0 || seen.Seq == 0 || seen.Seq != next-1 {
		return -1
	}
	i := int(next - ws.ring[0].Seq)
	if i < 1 || i > len(ws.ring) || ws.ring[i-1].Hash() != seen.Hash {
		return -1
	}
	return i
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
