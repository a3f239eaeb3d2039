package jsonl

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/eventlog"
)

// cache holds the handles of the sessions in use, and of those used last, up
// to a bound. A handle in use is never closed. Finding a handle that is there
// takes no lock, so that appends to different sessions do not meet.
type cache struct {
	handles sync.Map // of *handle, by session
	max     int64
	count   atomic.Int64
	epoch   atomic.Int64 // how many handles were made
	closed  atomic.Bool

	mu      sync.Mutex // of those who make and evict handles, and of drained
	drained *sync.Cond // a handle was given back after closed was set
}

// retired is the number of users of a handle that was evicted.
const evicted = -1 << 30

func (c *cache) init(most int) {
	c.max = int64(most)
	c.drained = sync.NewCond(&c.mu)
}

// acquire gives the handle of a session for use until release.
func (c *cache) acquire(s *Store, session string, closing bool) (*handle, error) {
	h := c.find(session)
	if h == nil || !h.pin() {
		h = c.make(s, session)
	}
	h.used.Store(c.epoch.Load())
	if c.closed.Load() && !closing {
		c.release(h)
		return nil, eventlog.ErrClosed
	}
	return h, nil
}

func (c *cache) find(session string) *handle {
	h, _ := c.handles.Load(session)
	found, _ := h.(*handle)
	return found
}

func (c *cache) make(s *Store, session string) *handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.find(session); h != nil && h.pin() {
		return h
	}
	h := newHandle(s, session)
	h.pin()
	c.handles.Store(session, h)
	c.count.Add(1)
	c.epoch.Add(1)
	return h
}

// pin counts a user in, unless h was evicted.
func (h *handle) pin() bool {
	for {
		n := h.users.Load()
		if n < 0 {
			return false
		}
		if h.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a handle back and closes what exceeds the bound.
func (c *cache) release(h *handle) {
	h.users.Add(-1)
	if c.closed.Load() {
		c.mu.Lock()
		c.drained.Broadcast()
		c.mu.Unlock()
	}
	if c.count.Load() > c.max {
		c.evict(c.max - c.max/8) // several at once, as finding the oldest takes a look at all
	}
}

// shed closes the files of all idle handles; it reports whether there were any.
func (c *cache) closeIdle() bool { return c.evict(0) }

// evict closes the least recently used idle handles beyond a number. A poisoned
// one is kept, without its file: its session stays refused.
func (c *cache) evict(most int64) bool {
	var victims []*handle
	c.mu.Lock()
	for _, h := range c.idle() {
		if c.count.Load() <= most {
			break
		}
		if !h.users.CompareAndSwap(0, evicted) {
			continue
		}
		if h.poison != nil {
			h.users.Store(0)
			continue
		}
		c.handles.Delete(h.session)
		c.count.Add(-1)
		victims = append(victims, h)
	}
	c.mu.Unlock()
	for _, h := range victims {
		_ = h.drop()
	}
	return len(victims) > 0
}

// idle lists the handles that nobody uses, the least recently used first.
func (c *cache) idle() (handles []*handle) {
	for _, h := range c.all() {
		if h.users.Load() == 0 {
			handles = append(handles, h)
		}
	}
	slices.SortFunc(handles, func(a, b *handle) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	return handles
}

func (c *cache) all() (handles []*handle) {
	c.handles.Range(func(_, h any) bool {
		handles = append(handles, h.(*handle))
		return true
	})
	return handles
}

// view is what readers of this process may see of a session that has a handle.
func (c *cache) view(session string) (view, bool) {
	h := c.find(session)
	if h == nil {
		return view{}, false
	}
	h.viewMu.Lock()
	defer h.viewMu.Unlock()
	return h.view, h.view.inode != 0
}

// drain refuses new users and waits for those there are.
func (c *cache) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	for slices.ContainsFunc(c.all(), func(h *handle) bool { return h.users.Load() > 0 }) {
		c.drained.Wait()
	}
}

func (c *cache) closeAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, h := range c.all() {
		errs = append(errs, h.drop())
	}
	c.handles.Clear()
	c.count.Store(0)
	return errors.Join(errs...)
}
