package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

const (
	lockShared    = `SELECT pg_advisory_lock_shared($1)`
	lockExclusive = `SELECT pg_advisory_lock($1)`
	unlockAll     = `SELECT pg_advisory_unlock_all()`

	// The holder of the exclusive lock raises the fence. Its writes check that their
	// epoch is still the newest. A holder that dies leaves the fence raised; the next
	// holder of any lock begins a new epoch, so a late write of the old one fails.
	readFence  = `SELECT epoch, erasing FROM fence`
	resetFence = `UPDATE fence SET epoch = epoch + 1, erasing = false WHERE erasing`
	raiseFence = `UPDATE fence SET epoch = epoch + 1, erasing = true RETURNING epoch`
	lowerFence = `UPDATE fence SET erasing = false WHERE epoch = $1`
	holdEpoch  = `SELECT epoch FROM fence WHERE epoch = $1 FOR SHARE`
	holdFence  = `SELECT epoch FROM fence WHERE NOT erasing FOR SHARE`
)

// Lock implements eventlog.Locker with an advisory lock, on a connection of its own. The
// server releases the lock when the connection ends. A read-only store has no exclusive
// lock, and takes a shared one without the fence.
func (s *Store) Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error) {
	if exclusive {
		_, err = s.writable(ctx)
	} else {
		_, err = s.pool(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.lifetime, func() { stop(eventlog.ErrClosed) })()
	if limit := s.options.LockTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { stop(fmt.Errorf("%w for %v", eventlog.ErrLocked, limit)) }).Stop()
	}
	l, err := s.locks.take(waiting, exclusive)
	if err != nil {
		if cause := context.Cause(waiting); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	held, lost := context.WithCancelCause(context.WithValue(ctx, lockKey{s}, l))
	l.watch(lost)
	return held, sync.OnceFunc(func() {
		if ctx.Err() != nil {
			go l.release() // the server may be out of reach, and the caller waits no longer
		} else {
			l.release()
		}
		lost(context.Canceled)
	}), nil
}

// lockKey is the key of a store's lock in a context.
type lockKey struct{ store *Store }

// locks are the connections for locks. A connection has one lock at most.
type locks struct {
	store *Store

	mu   sync.Mutex
	idle []*pgx.Conn
	held map[*lock]struct{}
}

// maxIdleLocks bounds the connections that wait for the next lock.
const maxIdleLocks = 4

// lock is a held store lock.
type lock struct {
	locks     *locks
	conn      *pgx.Conn
	exclusive bool
	epoch     int64 // of the fence

	stop  context.CancelFunc // ends the watch
	ended chan struct{}      // closed after the watch
}

// take waits for the lock.
func (ls *locks) take(ctx context.Context, exclusive bool) (*lock, error) {
	conn, err := ls.connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &lock{locks: ls, conn: conn, exclusive: exclusive}
	if err := l.acquire(ctx); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // the server releases the lock
		return nil, err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.held == nil {
		ls.held = make(map[*lock]struct{})
	}
	ls.held[l] = struct{}{}
	return l, nil
}

// connect returns an idle connection that still works, or a new one.
func (ls *locks) connect(ctx context.Context) (*pgx.Conn, error) {
	for {
		ls.mu.Lock()
		if len(ls.idle) == 0 {
			ls.mu.Unlock()
			break
		}
		conn := ls.idle[len(ls.idle)-1]
		ls.idle = ls.idle[:len(ls.idle)-1]
		ls.mu.Unlock()
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		_ = conn.Close(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	conn, err := pgx.ConnectConfig(ctx, ls.store.dedicated())
	return conn, ls.store.failure(err)
}

// dedicated is the configuration of a connection that waits for long. Server and client
// find a broken one in about 10 s.
func (s *Store) dedicated() *pgx.ConnConfig {
	config := s.config.ConnConfig.Copy()
	for name, value := range map[string]string{"tcp_keepalives_idle": "4", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"} {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	return config
}

// acquire waits for the advisory lock, then looks after the fence.
func (l *lock) acquire(ctx context.Context) error {
	s := l.locks.store
	query := lockShared
	if l.exclusive {
		query = lockExclusive
	}
	if _, err := l.conn.Exec(ctx, query, s.lockNumber()); err != nil {
		return s.failure(err)
	}
	if l.exclusive {
		_, err := s.scan(l.conn.QueryRow(ctx, raiseFence), []any{&l.epoch})
		return err
	}
	for {
		var raised bool
		_, err := s.scan(l.conn.QueryRow(ctx, readFence), []any{&l.epoch, &raised})
		if err != nil || !raised || s.options.ReadOnly {
			return err
		}
		if _, err = l.conn.Exec(ctx, resetFence); err != nil {
			return s.failure(err)
		}
	}
}

// lockNumber is the number of the advisory lock. A database has one series of numbers.
func (s *Store) lockNumber() int64 {
	sum := sha256.Sum256([]byte("convlog store lock\x00" + s.schema))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// watch calls lost when the connection breaks: the server then gives the lock to others.
func (l *lock) watch(lost context.CancelCauseFunc) {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.ended = stop, make(chan struct{})
	go func() {
		defer close(l.ended)
		for ctx.Err() == nil {
			if _, err := l.conn.WaitForNotification(ctx); err != nil && ctx.Err() == nil {
				lost(fmt.Errorf("%w: %s", eventlog.ErrLockLost, oneLine(err.Error())))
				return
			}
		}
	}()
}

// unlockTime bounds the time of a release. After it the connection is closed, which
// releases the lock too.
const unlockTime = 5 * time.Second

// release ends the lock.
func (l *lock) release() {
	l.stop()
	<-l.ended
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	var err error
	if l.exclusive {
		_, err = l.conn.Exec(ctx, lowerFence, l.epoch)
	}
	if err == nil {
		_, err = l.conn.Exec(ctx, unlockAll)
	}
	ls := l.locks
	ls.mu.Lock()
	delete(ls.held, l)
	keep := err == nil && len(ls.idle) < maxIdleLocks && ls.store.lifetime.Err() == nil
	if keep {
		ls.idle = append(ls.idle, l.conn)
	}
	ls.mu.Unlock()
	if !keep {
		_ = l.conn.Close(ctx)
	}
}

// close closes the idle connections and ends the held locks: their contexts end with
// ErrLockLost.
func (ls *locks) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	for _, conn := range ls.idle {
		_ = conn.Close(ctx)
	}
	ls.idle = nil
	for l := range ls.held {
		_ = l.conn.PgConn().Conn().Close() // wakes the watch
	}
}

// lockIn is the store lock of a context; nil if the context has none.
func (s *Store) lockIn(ctx context.Context) *lock {
	l, _ := ctx.Value(lockKey{s}).(*lock)
	return l
}

// checkFence fails with ErrLockLost if the context of the transaction comes from a store
// lock that has ended, and another process erases since. Until the transaction ends, no
// other process gets the exclusive lock.
func (t transaction) checkFence() error {
	l := t.store.lockIn(t.ctx)
	if l == nil {
		return nil
	}
	var epoch int64
	found, err := t.one([]any{&epoch}, holdEpoch, l.epoch)
	if err == nil && !found {
		err = fmt.Errorf("%w: another process has taken it", eventlog.ErrLockLost)
	}
	return err
}

var errErasing = errors.New("an erasure is running")

// checkBlobs fails if a blob is missing that an append names, or if another process
// erases: the writer of the blob had the shared lock, and lost it. Until the transaction
// ends, no erasure begins. A transaction under a store lock has passed checkFence, and
// repairs append events with missing blobs.
func (t transaction) checkBlobs(blobs [][]byte) error {
	if t.store.lockIn(t.ctx) != nil {
		return nil
	}
	var epoch int64
	found, err := t.one([]any{&epoch}, holdFence)
	if err == nil && !found {
		err = fmt.Errorf("%w: %w", eventlog.ErrLockLost, errErasing)
	}
	if err != nil || engine.BlobsElsewhere(t.ctx) {
		return err
	}
	var missing []byte
	found, err = t.one([]any{&missing}, blobsMissing, blobs)
	if found {
		err = fmt.Errorf("%w: %w: %s", event.ErrInvalidBlob, eventlog.ErrBlobNotFound, digestOf(missing))
	}
	return err
}
