package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/notify"
)

// Store stores sessions in a schema of a PostgreSQL database. It implements
// eventlog.Store and the interfaces in the assertions below. All methods are safe for
// concurrent use.
type Store struct {
	settings
	options  Options
	lifetime context.Context // ends with Close
	cancel   context.CancelFunc

	opening chan struct{}                // has an element while the store opens, and after Close
	conns   atomic.Pointer[pgxpool.Pool] // nil before the store is open
	closed  atomic.Bool

	locks   locks
	leases  leases
	history history
	changes *notify.Hub
	sender  sender
}

var (
	_ eventlog.Store         = (*Store)(nil)
	_ eventlog.Blobs         = (*Store)(nil)
	_ eventlog.BulkVersioner = (*Store)(nil)
	_ eventlog.Cataloger     = (*Store)(nil)
	_ eventlog.Checker       = (*Store)(nil)
	_ eventlog.Locker        = (*Store)(nil)
	_ eventlog.Eraser        = (*Store)(nil)
	_ eventlog.Identifier    = (*Store)(nil)
	_ eventlog.Leaser        = (*Store)(nil)
	_ eventlog.Notifier      = (*Store)(nil)
	_ eventlog.Retainer      = (*Store)(nil)
	_ eventlog.Salvager      = (*Store)(nil)
	_ eventlog.Sweeper       = (*Store)(nil)
	_ eventlog.Syncer        = (*Store)(nil)
	_ eventlog.Versioner     = (*Store)(nil)
)

// New returns the store of a DSN, either a URL or pairs of keyword and value, as the
// programs of PostgreSQL take it, with their environment variables. Besides the options
// of the driver (package pgx) it may have these:
//
//	schema      the schema of the log; "convlog" by default
//	partitions  the number of partitions of the table of events, fixed when the first
//	            write creates the tables; no partitions by default
//	assume_synced=true
//	            the storage of the server keeps its writes although the server runs with
//	            fsync=off; without it such a server is refused for writing
//
// New makes no connection. It uses the first Options only. Errors have no password.
func New(dsn string, opts ...Options) (*Store, error) {
	s := &Store{opening: make(chan struct{}, 1)}
	if len(opts) > 0 {
		s.options = opts[0]
	}
	if s.options.LeaseTime <= 0 {
		s.options.LeaseTime = defaultLeaseTime
	}
	var err error
	if s.settings, err = parse(dsn, s.options.ReadOnly); err != nil {
		return nil, err
	}
	s.lifetime, s.cancel = context.WithCancel(context.Background())
	s.config.AfterConnect = s.checkHistory
	s.locks.store, s.sender.store, s.sender.name = s, s, rand.Text()
	s.leases.store, s.leases.held, s.leases.opening = s, make(map[string]*lease), make(chan struct{}, 1)
	s.changes = notify.New(s.poller)
	return s, nil
}

// pool opens the store if necessary, and returns its connections.
func (s *Store) pool(ctx context.Context) (*pgxpool.Pool, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if pool := s.conns.Load(); pool != nil {
		return pool, nil
	}
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.lifetime.Done():
		return nil, eventlog.ErrClosed
	}
	if pool := s.conns.Load(); pool != nil {
		return pool, nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), s.config)
	if err != nil {
		return nil, s.failure(err)
	}
	opening, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.lifetime, stop)()
	if err := s.prepare(opening, pool); err != nil {
		pool.Close()
		return nil, err
	}
	s.conns.Store(pool)
	return pool, nil
}

// writable is pool for a call that writes.
func (s *Store) writable(ctx context.Context) (*pgxpool.Pool, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if s.options.ReadOnly {
		return nil, eventlog.ErrReadOnly
	}
	return s.pool(ctx)
}

// writer is a connection for a call that writes. The caller releases it.
func (s *Store) writer(ctx context.Context) (*pgxpool.Conn, error) {
	pool, err := s.writable(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Acquire(ctx)
	return conn, s.failure(err)
}

// usable is the error of a call on a closed store, after a rollback of the server, or
// with an ended context.
func (s *Store) usable(ctx context.Context) error {
	if s.lifetime.Err() != nil {
		return eventlog.ErrClosed
	}
	if lost := s.history.lost.Load(); lost != nil {
		return lost
	}
	return ctx.Err()
}

// Close implements eventlog.Store. It ends the leases and the locks, and waits for
// running statements.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.changes.Close()
	s.opening <- struct{}{} // waits for a running opening; nobody opens any more
	pool := s.conns.Load()
	s.leases.close()
	s.sender.close()
	s.locks.close()
	if pool != nil {
		pool.Close()
	}
	return nil
}

// one runs a query of one row. found is false if it has no row.
func (s *Store) one(ctx context.Context, to []any, query string, args ...any) (found bool, err error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return false, err
	}
	return s.scan(pool.QueryRow(ctx, query, args...), to)
}

// wrap adds a phrase to an error. A nil error stays nil.
func wrap(phrase string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", phrase, err)
}
