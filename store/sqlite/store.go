package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// SyncPolicy says when an append is on disk. Every policy survives the death of the
// process; the policies differ in what a loss of power may cost.
type SyncPolicy int

const (
	// Always syncs each append before the append returns. A loss of power costs
	// nothing.
	Always SyncPolicy = iota
	// Periodic syncs when SQLite copies its write-ahead log into the database. A loss
	// of power may cost the newest appends.
	Periodic
	// Never leaves syncing to the operating system. A loss of power may damage the
	// database back to the last durable append.
	Never
)

// Options of a Store. The zero value is right for most programs.
type Options struct {
	// ReadOnly opens the file for reading only: it must exist, nothing is
	// created beside it where SQLite lets that be avoided, and writes are
	// refused with eventlog.ErrReadOnly.
	ReadOnly bool
	// Sync is the policy of appends that do not demand durability themselves. Blobs,
	// rewrites and removals are always synced.
	Sync SyncPolicy
	// LockTimeout bounds how long a lock that another process holds is waited for;
	// then the answer is eventlog.ErrLocked. Without it the context alone does.
	LockTimeout time.Duration
}

// Store keeps sessions in one SQLite database file. It implements
// eventlog.Store and its abilities Blobs, Locker, Rewriter, Remover,
// Searcher, Sweeper, Syncer and Versioner. All methods may be called concurrently.
type Store struct {
	path    string
	options Options
	maxBlob int64

	turn    chan struct{} // held by the one who opens or closes
	opened  atomic.Bool
	closed  bool            // guarded by turn
	life    context.Context // ends with Close
	end     context.CancelFunc
	writer  *writer
	readers *pool
	watch   watcher
	locks   storeLock
	index   indexer
}

var (
	_ eventlog.Store     = (*Store)(nil)
	_ eventlog.Blobs     = (*Store)(nil)
	_ eventlog.Locker    = (*Store)(nil)
	_ eventlog.Eraser    = (*Store)(nil)
	_ eventlog.Searcher  = (*Store)(nil)
	_ eventlog.Sweeper   = (*Store)(nil)
	_ eventlog.Syncer    = (*Store)(nil)
	_ eventlog.Versioner = (*Store)(nil)
	_ eventlog.Salvager  = (*Store)(nil)
	_ eventlog.Checker   = (*Store)(nil)
)

// New makes a store of the database file at path. The file is opened at the
// first use, and errors surface there; unless the store is read-only, a
// missing file is created with mode 0600, missing folders with 0700.
func New(path string, opts ...Options) *Store {
	s := &Store{path: path, maxBlob: maxBlobBytes, turn: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	if len(opts) > 0 {
		s.options = opts[0]
	}
	s.locks.path, s.locks.limit = path+"-lock", s.options.LockTimeout
	return s
}

// Path is the path of the database file.
func (s *Store) Path() string { return s.path }

// Close waits for writes in progress, refuses those still queued, and closes
// the database. Under a relaxed sync policy it syncs what was acknowledged. The
// index of texts is brought up to date before, unless that takes long.
func (s *Store) Close() error {
	s.index.finish()
	s.end()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed || !s.opened.Load() {
		return nil
	}
	s.closed = true
	return errors.Join(s.watch.close(), s.readers.close(), s.closeWriter())
}

// closeTimeout bounds how long Close waits for another process's lock before
// it gives up syncing.
const closeTimeout = 10 * time.Second

func (s *Store) closeWriter() error {
	if s.writer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(s.writer.flush(ctx), s.writer.close())
}

// open opens the database once; after an error the next call tries again.
// Another process may keep the file from being opened for as long as it likes,
// while it makes it: each caller waits as long as his own context allows.
func (s *Store) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.life.Err() != nil {
		return eventlog.ErrClosed
	}
	if s.opened.Load() {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return s.notOpened(ctx.Err())
	}
	defer func() { <-s.turn }()
	if s.life.Err() != nil {
		return eventlog.ErrClosed
	}
	if s.opened.Load() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if err := s.openNow(ctx); err != nil {
		return s.notOpened(err)
	}
	s.opened.Store(true)
	return nil
}

// notOpened says why the store could not be opened.
func (s *Store) notOpened(err error) error {
	switch {
	case s.life.Err() != nil:
		return eventlog.ErrClosed
	case isDamage(err):
		return fmt.Errorf("open sqlite store: %w", &eventlog.CorruptError{Path: s.path, Offset: -1, Cause: err})
	default:
		return fmt.Errorf("open sqlite store %s: %w", s.path, explain(s.path, err))
	}
}

func (s *Store) openNow(ctx context.Context) error {
	if s.options.ReadOnly {
		s.readers = newPool(s.dialReadOnly(), fileStamp(s.path), s.options.LockTimeout)
		return untilMade(ctx, func() error { return s.readers.with(ctx, func(*conn) error { return nil }) })
	}
	if err := createFile(s.path); err != nil {
		return err
	}
	w, err := openWriter(ctx, s.path, s.options)
	if err != nil {
		return err
	}
	s.writer = w
	s.readers = newPool(func(stamp) (*conn, error) { return dial(s.path, "mode=ro") }, nil, s.options.LockTimeout)
	s.index.start(s)
	return nil
}

// making bounds how long a reader waits for another process to make the store.
const making = time.Second

// untilMade repeats f while another process makes the store.
func untilMade(ctx context.Context, f func() error) error {
	bounded, cancel := context.WithTimeout(ctx, making)
	defer cancel()
	var last error
	err := patiently(bounded, func() error {
		if last = f(); errors.Is(last, errUnmade) {
			return errInUse
		}
		return last
	})
	if ctx.Err() == nil {
		return last
	}
	return err
}

// write queues an operation.
func (s *Store) write(ctx context.Context, op operation, durable bool) error {
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	err := s.writer.do(ctx, &job{op: op, durable: durable})
	s.index.touch()
	if isDamage(err) && !errors.Is(err, eventlog.ErrUnknownOutcome) && !errors.Is(err, eventlog.ErrCorrupt) {
		err = &eventlog.CorruptError{Path: filepath.Base(s.path), Offset: -1, Cause: err}
	}
	return err
}

// read runs f on a connection for reading. f may run again after an error.
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.readers.with(ctx, f)
}
