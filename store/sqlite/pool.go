package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// maxReaders is how many connections read at the same time.
const maxReaders = 4

// pool holds a few connections for reading. Each is used for one page and then
// given back, so that waiting for one is short.
type pool struct {
	dial  func(stamp) (*conn, error)
	stamp func() (stamp, error) // nil where SQLite's own locks do
	limit time.Duration         // of waiting for other processes; none if 0
	slots chan struct{}

	mu     sync.Mutex
	idle   []*conn
	at     stamp // what the idle connections were opened at
	closed bool
}

func newPool(dial func(stamp) (*conn, error), stamp func() (stamp, error), limit time.Duration) *pool {
	return &pool{dial: dial, stamp: stamp, limit: limit, slots: make(chan struct{}, maxReaders)}
}

// with runs f on a connection, again while the database is busy or changes
// beneath an immutable connection. A connection that f failed on is not used
// again.
func (p *pool) with(ctx context.Context, f func(*conn) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	return within(ctx, p.limit, func(ctx context.Context) error { return p.try(ctx, f) })
}

// try makes attempts until one counts, or ctx ends.
func (p *pool) try(ctx context.Context, f func(*conn) error) error {
	return patiently(ctx, func() error {
		for {
			again, err := p.once(f)
			if !again {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}

// once is one attempt; again is true when the file changed meanwhile, so that
// neither result nor error counts.
func (p *pool) once(f func(*conn) error) (again bool, err error) {
	before, err := p.takeStamp()
	if err != nil {
		return false, err
	}
	c, err := p.take(before)
	if err == nil {
		err = f(c)
	}
	after, stampErr := p.takeStamp()
	again = stampErr == nil && after != before && !before.live && p.stamp != nil
	if c == nil {
		return again, err
	}
	if err != nil || again {
		return again, errors.Join(err, c.close())
	}
	return false, p.give(c, before)
}

func (p *pool) takeStamp() (stamp, error) {
	if p.stamp == nil {
		return stamp{}, nil
	}
	at, err := p.stamp()
	if at.live {
		at = stamp{live: true, inode: at.inode} // SQLite sees the rest by itself
	}
	return at, err
}

func (p *pool) take(at stamp) (*conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, eventlog.ErrClosed
	}
	var stale []*conn
	if at != p.at {
		stale, p.idle, p.at = p.idle, nil, at
	}
	var c *conn
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if err := closeAll(stale); err != nil {
		return nil, err
	}
	if c != nil {
		return c, nil
	}
	return p.dial(at)
}

func (p *pool) give(c *conn, at stamp) error {
	p.mu.Lock()
	keep := !p.closed && at == p.at
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if keep {
		return nil
	}
	return c.close()
}

// close waits until no connection is in use, and closes them.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for range maxReaders {
		p.slots <- struct{}{}
	}
	for range maxReaders {
		<-p.slots
	}
	return closeAll(idle)
}

func closeAll(conns []*conn) error {
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
