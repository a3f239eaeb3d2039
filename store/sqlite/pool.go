package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// maxReaders is the number of connections that read at the same time.
const maxReaders = 4

// pool is a pool of connections for reading. A reader uses a connection for one page
// and returns it, so waiting times are short.
type pool struct {
	dial  func(stamp) (*conn, error)
	stamp func() (stamp, error) // nil if SQLite's locks are enough
	limit time.Duration         // longest wait for other processes; 0 is no limit
	slots chan struct{}

	mu     sync.Mutex
	idle   []*conn
	at     stamp // stamp of the idle connections
	closed bool
}

func newPool(dial func(stamp) (*conn, error), stamp func() (stamp, error), limit time.Duration) *pool {
	return &pool{dial: dial, stamp: stamp, limit: limit, slots: make(chan struct{}, maxReaders)}
}

// with runs f on a connection. It runs f again while the database is busy, or if a
// writer changed the file under an immutable connection. A connection is closed after
// an error of f.
func (p *pool) with(ctx context.Context, f func(*conn) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	return withTimeout(ctx, p.limit, func(ctx context.Context) error { return p.retry(ctx, f) })
}

// retry repeats attempts until the result is valid or ctx ends.
func (p *pool) retry(ctx context.Context, f func(*conn) error) error {
	return retryBusy(ctx, func() error {
		for {
			again, err := p.attempt(f)
			if !again {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}

// attempt runs f once. again is true if the file changed during f: the result and the
// error are invalid then.
func (p *pool) attempt(f func(*conn) error) (again bool, err error) {
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
	if err != nil || again || c.exclusive {
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
		at = stamp{live: true, inode: at.inode} // SQLite notices the other changes
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

// close waits for all connections and closes them.
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
