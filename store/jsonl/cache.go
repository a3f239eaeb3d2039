package jsonl

import (
	"errors"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// cache holds the handles of the sessions in use, and of those used last, up
// to a bound. A handle in use is never closed.
type cache struct {
	mu      sync.Mutex
	handles map[string]*handle
	idle    handle // ring: next is the most, prev the least recently used
	max     int
	active  int
	closed  bool
	drained *sync.Cond // active is 0
}

func (c *cache) init(most int) {
	c.handles = make(map[string]*handle)
	c.idle.next, c.idle.prev = &c.idle, &c.idle
	c.max = most
	c.drained = sync.NewCond(&c.mu)
}

// acquire gives the handle of a session for use until release.
func (c *cache) acquire(s *Store, session string, closing bool) (*handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed && !closing {
		return nil, eventlog.ErrClosed
	}
	h := c.handles[session]
	if h == nil {
		h = newHandle(s, session)
		c.handles[session] = h
	}
	if h.next != nil {
		h.unlink()
	}
	h.users++
	c.active++
	return h, nil
}

// release gives a handle back and closes what exceeds the bound. A poisoned
// handle is kept, without its file: its session stays refused.
func (c *cache) release(h *handle) {
	c.mu.Lock()
	h.users--
	c.active--
	if c.active == 0 {
		c.drained.Broadcast()
	}
	var victims *handle
	if h.users == 0 {
		if h.poison == nil {
			h.link(&c.idle)
		}
		victims = c.evict(c.max)
	}
	c.mu.Unlock()
	dropAll(victims)
}

// shed closes the files of all idle handles; it reports whether there were any.
func (c *cache) shed() bool {
	c.mu.Lock()
	victims := c.evict(0)
	c.mu.Unlock()
	dropAll(victims)
	return victims != nil
}

func dropAll(victims *handle) {
	for ; victims != nil; victims = victims.next {
		_ = victims.drop()
	}
}

// evict takes the least recently used handles beyond a number out and chains
// them.
func (c *cache) evict(most int) (victims *handle) {
	for len(c.handles) > most && c.idle.prev != &c.idle {
		h := c.idle.prev
		h.unlink()
		delete(c.handles, h.session)
		h.next, victims = victims, h
	}
	return victims
}

// view is what readers of this process may see of a session that has a handle.
func (c *cache) view(session string) (view, bool) {
	c.mu.Lock()
	h := c.handles[session]
	c.mu.Unlock()
	if h == nil {
		return view{}, false
	}
	h.viewing.Lock()
	defer h.viewing.Unlock()
	return h.seen, h.seen.inode != 0
}

// drain refuses new users and waits for those there are.
func (c *cache) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.active > 0 {
		c.drained.Wait()
	}
}

func (c *cache) closeAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, h := range c.handles {
		errs = append(errs, h.drop())
	}
	clear(c.handles)
	return errors.Join(errs...)
}
