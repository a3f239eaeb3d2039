package jsonl

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/eventlog"
)

// cache holds the handles of sessions in use and of recently used sessions, up to max.
// It never closes a handle in use. Finding an existing handle takes no lock, so appends
// to different sessions do not contend. A poisoned handle stays, so that its session stays
// refused. Its file is closed, so it does not count.
type cache struct {
	handles sync.Map // session id to *handle
	max     int64
	count   atomic.Int64 // handles that can have an open file
	epoch   atomic.Int64 // counts created handles; orders handles by last use
	closed  atomic.Bool

	mu      sync.Mutex // guards creation and eviction of handles, and drained
	drained *sync.Cond // signals releases after closed was set
}

// evicted is the user count of an evicted handle.
const evicted = -1 << 30

func (c *cache) init(most int) {
	c.max = int64(most)
	c.drained = sync.NewCond(&c.mu)
}

// acquire returns the handle of a session and counts the caller as a user. The caller
// must call release. After drain, acquire fails unless closing is true.
func (c *cache) acquire(s *Store, session string, closing bool) (*handle, error) {
	h := c.find(session)
	if h == nil || !h.pin() {
		h = c.make(s, session)
	}
	h.lastUse.Store(c.epoch.Load())
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

// pin adds a user, unless h was evicted.
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

// release removes a user and evicts idle handles above the limit.
func (c *cache) release(h *handle) {
	h.users.Add(-1)
	if c.closed.Load() {
		c.mu.Lock()
		c.drained.Broadcast()
		c.mu.Unlock()
	}
	if c.count.Load() > c.max {
		c.evict(c.max - c.max/8) // evict several at once: sorting the idle handles is slow
	}
}

// closeIdle closes the files of all idle handles. It reports whether it closed any.
func (c *cache) closeIdle() bool { return c.evict(0) }

// evict closes the least recently used idle handles until at most most are left.
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
		c.count.Add(-1)
		if h.poison != nil {
			h.uncounted = true
			h.users.Store(0)
			continue
		}
		c.handles.Delete(h.session)
		victims = append(victims, h)
	}
	c.mu.Unlock()
	for _, h := range victims {
		_ = h.drop()
	}
	return len(victims) > 0
}

// idle returns the counted handles without users, least recently used first.
func (c *cache) idle() (handles []*handle) {
	for _, h := range c.all() {
		if h.users.Load() == 0 && !h.uncounted {
			handles = append(handles, h)
		}
	}
	slices.SortFunc(handles, func(a, b *handle) int { return cmp.Compare(a.lastUse.Load(), b.lastUse.Load()) })
	return handles
}

func (c *cache) all() (handles []*handle) {
	c.handles.Range(func(_, h any) bool {
		handles = append(handles, h.(*handle))
		return true
	})
	return handles
}

// view returns the readable part of a session's file. ok is false if the session has no
// handle or no open file.
func (c *cache) view(session string) (view, bool) {
	h := c.find(session)
	if h == nil {
		return view{}, false
	}
	h.viewMu.Lock()
	defer h.viewMu.Unlock()
	return h.view, h.view.inode != 0
}

// drain refuses new users and waits until all users have left.
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
