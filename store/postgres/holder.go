package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
)

const (
	lockOwner = `SELECT pg_try_advisory_lock($1)`
	// sweepLeases deletes the leases that have ended, and the leases of an owner of this
	// store whose connection broke.
	sweepLeases = `DELETE FROM leases WHERE name IN
		(SELECT name FROM leases WHERE expires <= clock_timestamp() OR owner = $1 FOR UPDATE SKIP LOCKED)`
	renewLeases = `UPDATE leases SET expires = clock_timestamp() + $2 WHERE owner = $1 AND expires > clock_timestamp() AND ` + noSync + ` RETURNING epoch`
)

// The server must not find a broken connection before the holder does. It needs about
// 10 s after the last sign of life (see dedicated).
const (
	// pingPause is the longest pause between two questions to the server.
	pingPause = 2 * time.Second
	// pingTime bounds the wait for an answer.
	pingTime = 5 * time.Second
)

// holder is a connection that has the advisory lock of an owner. The server releases the
// lock when the connection ends, so others learn that the process died.
type holder struct {
	leases *leases
	conn   *pgx.Conn
	owner  int64 // random, not 0
}

// connected returns the holder, and connects it if necessary.
func (ls *leases) connected(ctx context.Context) (*holder, error) {
	if _, err := ls.store.writable(ctx); err != nil {
		return nil, err
	}
	select {
	case ls.opening <- struct{}{}:
		defer func() { <-ls.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ls.store.lifetime.Done():
		return nil, eventlog.ErrClosed
	}
	ls.mu.Lock()
	h, former := ls.holder, ls.former
	ls.mu.Unlock()
	if h != nil {
		return h, nil
	}
	opening, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ls.store.lifetime, stop)()
	h, err := ls.connect(opening, former)
	if err != nil {
		return nil, ls.store.failure(err)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.holder = h
	ls.running.Go(func() { h.run(ls.store.lifetime) })
	return h, nil
}

// connect takes the lock of a new owner on a new connection.
func (ls *leases) connect(ctx context.Context, former int64) (h *holder, err error) {
	h = &holder{leases: ls}
	if h.conn, err = pgx.ConnectConfig(ctx, ls.store.dedicated()); err != nil {
		return nil, err
	}
	for locked := false; !locked && err == nil; {
		h.owner = newOwner()
		err = h.conn.QueryRow(ctx, lockOwner, h.owner).Scan(&locked)
	}
	if err == nil {
		_, err = h.conn.Exec(ctx, sweepLeases, former)
	}
	if err != nil {
		_ = h.conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return h, nil
}

func newOwner() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1
}

// run renews the leases until ctx ends or the connection breaks. Then all leases end: the
// server has released the lock, or will.
func (h *holder) run(ctx context.Context) {
	leaseTime := h.leases.store.options.LeaseTime
	renewed := time.Now()
	for h.wait(ctx, min(pingPause, leaseTime/3)) {
		began := time.Now()
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.leases.earliest(began.Add(pingTime)))
		if began.Sub(renewed) < leaseTime/3 {
			_ = h.conn.Ping(limited)
		} else {
			epochs, err := h.renew(limited)
			h.leases.settle(epochs, err, began)
			if err == nil {
				renewed = began
			}
		}
		cancel()
	}
	h.leases.lose(h)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTime)
	defer cancel()
	_, _ = h.conn.Exec(closing, releaseLeases, h.owner) // if it fails, they end with the lock
	_ = h.conn.Close(closing)
}

// wait waits, and returns false if ctx ended or the connection broke. A question without
// an answer breaks the connection.
func (h *holder) wait(ctx context.Context, pause time.Duration) bool {
	waiting, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	for waiting.Err() == nil && !h.conn.IsClosed() {
		_, _ = h.conn.WaitForNotification(waiting)
	}
	return ctx.Err() == nil && !h.conn.IsClosed()
}

// earliest is the earliest end of a lease, and at most limit.
func (ls *leases) earliest(limit time.Time) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.held {
		if l.until.Before(limit) {
			limit = l.until
		}
	}
	return limit
}

// renew returns the epochs of the leases that the owner still has.
func (h *holder) renew(ctx context.Context) (map[int64]bool, error) {
	rows, err := h.conn.Query(ctx, renewLeases, h.owner, h.leases.store.options.LeaseTime)
	if err != nil {
		return nil, err
	}
	epochs := make(map[int64]bool)
	var epoch int64
	_, err = pgx.ForEachRow(rows, []any{&epoch}, func() error {
		epochs[epoch] = true
		return nil
	})
	return epochs, err
}

// settle ends the leases that a renewal, which began at a time, did not find. If it
// failed, a lease ends when its time is over.
func (ls *leases) settle(renewed map[int64]bool, err error, began time.Time) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.held {
		switch {
		case err == nil && renewed[l.epoch]:
			l.until = began.Add(ls.store.options.LeaseTime)
		case err == nil && l.since.Before(began), !time.Now().Before(l.until):
			l.end()
		}
	}
}

// lose ends all leases of a holder whose connection broke.
func (ls *leases) lose(h *holder) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.holder, ls.former = nil, h.owner
	for _, l := range ls.held {
		l.end()
	}
}

// close ends all leases, and waits for the end of the holder. The lifetime of the store
// has ended.
func (ls *leases) close() {
	ls.opening <- struct{}{} // waits for a running opening; nobody connects any more
	ls.running.Wait()
}
