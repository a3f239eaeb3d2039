package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/lease"
	"github.com/convlog/convlog/internal/notify"
)

// syncLevel says when a commit is on disk.
type syncLevel int

const (
	always       syncLevel = iota // before the commit returns
	atCheckpoint                  // when SQLite copies its write-ahead log into the database
	never                         // when the operating system likes
)

// Options configures a Store. The zero value is right for most programs: each append is
// synced before it returns, and a loss of power loses nothing. With all options, appends
// survive the death of the process.
type Options struct {
	// ReadOnly opens the file for reading only. The file must exist. Writes return
	// eventlog.ErrReadOnly. The store creates no files, except SQLite's log index while
	// a writer uses the database. If the disk is full and a killed writer left a log
	// without an index, a read locks the database for a moment, and SQLite copies the log
	// into it.
	ReadOnly bool
	// SyncAtCheckpoint syncs appends that are not durable by themselves (eventlog.Store.Append)
	// when SQLite copies its write-ahead log into the database. A loss of power may lose
	// the newest appends. Blobs, rewrites and removals are always synced.
	SyncAtCheckpoint bool
	// NoSync leaves the syncs of such appends to the operating system. A loss of power may
	// damage the database.
	NoSync bool
	// LockTimeout bounds the wait for a lock of another process. After it the error is
	// eventlog.ErrLocked. Without a LockTimeout only the caller's context bounds the
	// wait.
	LockTimeout time.Duration
	// NoIndex leaves the text index to other stores of the file, and to Index: Close does
	// not wait for it. A search reads the events that are not indexed yet.
	NoIndex bool
}

// level is the sync level of appends that are not durable by themselves.
func (o *Options) level() syncLevel {
	switch {
	case o.NoSync:
		return never
	case o.SyncAtCheckpoint:
		return atCheckpoint
	}
	return always
}

// Store stores sessions in one SQLite database file. It implements eventlog.Store
// and eventlog's interfaces BlobIndex, Blobs, Cataloger, Checker, Eraser, Identifier, Leaser, Lister,
// Locker, Notifier, Relater, Salvager, Searcher, Sweeper, Syncer and Versioner. All methods
// are safe for concurrent use.
type Store struct {
	path    string
	options Options
	maxBlob int64

	openLock chan struct{} // held during open and close
	opened   atomic.Bool
	closed   bool            // guarded by openLock
	lifetime context.Context // ends with Close
	cancel   context.CancelFunc
	writer   *writer
	place    place // of the database when it was opened; see read
	readers  *pool
	watch    watcher
	locks    storeLock
	leases   *lease.Table
	changes  *notify.Hub
	index    indexer
}

var (
	_ eventlog.Store     = (*Store)(nil)
	_ eventlog.Blobs     = (*Store)(nil)
	_ eventlog.Cataloger = (*Store)(nil)
	_ eventlog.Locker    = (*Store)(nil)
	_ eventlog.Eraser    = (*Store)(nil)
	_ eventlog.Leaser    = (*Store)(nil)
	_ eventlog.Searcher  = (*Store)(nil)
	_ eventlog.Sweeper   = (*Store)(nil)
	_ eventlog.Syncer    = (*Store)(nil)
	_ eventlog.Notifier  = (*Store)(nil)
	_ eventlog.Versioner = (*Store)(nil)
	_ eventlog.Salvager  = (*Store)(nil)
	_ eventlog.Checker   = (*Store)(nil)
	_ eventlog.Lister    = (*Store)(nil)
	_ eventlog.Relater   = (*Store)(nil)
	_ eventlog.BlobIndex = (*Store)(nil)
)

// New returns a store of the database file at path. The first use opens the file and
// returns errors of opening it. Unless the store is read-only, it creates a missing
// file with mode 0600 and missing folders with mode 0700.
func New(path string, opts ...Options) *Store {
	s := &Store{path: path, maxBlob: maxBlobBytes, openLock: make(chan struct{}, 1)}
	s.lifetime, s.cancel = context.WithCancel(context.Background())
	if len(opts) > 0 {
		s.options = opts[0]
	}
	s.locks.path, s.locks.limit = path+"-lock", s.options.LockTimeout
	s.changes = notify.New(s.newPoller)
	s.leases = lease.Files(func() (string, error) { return path + "-lease", nil }, s.options.ReadOnly)
	return s
}

// Path returns the path of the database file.
func (s *Store) Path() string { return s.path }

// Close waits for running writes, fails queued ones with ErrClosed, ends the leases and
// closes the database. Unless Options.NoIndex is set, it first updates the text index, for
// at most 10 s. With a relaxed sync policy it also syncs all acknowledged appends.
func (s *Store) Close() error {
	s.index.finish()
	s.cancel()
	s.changes.Close()
	s.openLock <- struct{}{}
	defer func() { <-s.openLock }()
	if s.closed || !s.opened.Load() {
		return s.leases.Close()
	}
	s.closed = true
	return errors.Join(s.watch.close(), s.readers.close(), s.closeWriter(), s.leases.Close())
}

// closeTimeout bounds the wait of Close for a lock of another process before the last
// sync.
const closeTimeout = 10 * time.Second

func (s *Store) closeWriter() error {
	if s.writer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(s.writer.flush(ctx), s.writer.close())
}

// open opens the database once. After an error the next call tries again. A process
// that is creating the file can block open, so each caller waits for openLock only as
// long as its own context lives.
func (s *Store) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.lifetime.Err() != nil {
		return eventlog.ErrClosed
	}
	if s.opened.Load() {
		return nil
	}
	select {
	case s.openLock <- struct{}{}:
	case <-ctx.Done():
		return s.openError(ctx.Err())
	}
	defer func() { <-s.openLock }()
	if s.lifetime.Err() != nil {
		return eventlog.ErrClosed
	}
	if s.opened.Load() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	if err := s.openNow(ctx); err != nil {
		return s.openError(err)
	}
	s.opened.Store(true)
	if !s.options.ReadOnly {
		return s.finishScrub(ctx)
	}
	return nil
}

// openError converts the error of a failed open.
func (s *Store) openError(err error) error {
	switch {
	case s.lifetime.Err() != nil:
		return eventlog.ErrClosed
	case isDamage(err):
		return fmt.Errorf("open sqlite store: %w", &eventlog.CorruptError{Path: s.path, Offset: -1, Cause: err})
	default:
		return fmt.Errorf("open sqlite store %s: %w", s.path, explain(s.path, err))
	}
}

func (s *Store) openNow(ctx context.Context) error {
	if err := checkFiles(s.path); err != nil {
		return err
	}
	if s.options.ReadOnly {
		s.readers = newPool(s.dialReadOnly(), fileStamp(s.path), s.options.LockTimeout)
		return waitForCreation(ctx, func() error { return s.readers.with(ctx, func(*conn) error { return nil }) })
	}
	if err := createFile(s.path); err != nil {
		return err
	}
	if err := checkNames(s.path); err != nil {
		return err
	}
	w, err := openWriter(ctx, s.path, s.options)
	if err != nil {
		return err
	}
	s.writer, s.place = w, w.place
	s.readers = newPool(func(stamp) (*conn, error) { return dial(s.path, "mode=ro") }, nil, s.options.LockTimeout)
	s.index.start(s)
	return nil
}

// creationTimeout bounds the wait of a reader for a process that is creating the
// store.
const creationTimeout = time.Second

// waitForCreation repeats f while another process is creating the store.
func waitForCreation(ctx context.Context, f func() error) error {
	bounded, cancel := context.WithTimeout(ctx, creationTimeout)
	defer cancel()
	var last error
	err := retryBusy(bounded, func() error {
		if last = f(); errors.Is(last, errNoSchema) {
			return errInUse
		}
		return last
	})
	if ctx.Err() == nil {
		return last
	}
	return err
}

// write queues an operation and waits for its result.
func (s *Store) write(ctx context.Context, op operation, durable bool) error {
	level := s.options.level()
	switch {
	case engine.Unsynced(ctx):
		level = max(level, atCheckpoint)
	case durable:
		level = always
	}
	if s.options.ReadOnly {
		return eventlog.ErrReadOnly
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	err := s.writer.do(ctx, &job{op: op, level: level})
	s.index.notify()
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
	if s.writer != nil {
		if err := s.place.check(); err != nil {
			return err
		}
	}
	err := s.untilClose(ctx, func(ctx context.Context) error { return s.readers.with(ctx, f) })
	if isCode(err, codeCannotOpen) {
		err = openError(s.path, err)
	}
	return err
}

// untilClose runs f with a context that also ends when the store is closed. Then the
// error is ErrClosed.
func (s *Store) untilClose(ctx context.Context, f func(context.Context) error) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.lifetime, cancel)()
	err := f(waiting)
	if s.lifetime.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return eventlog.ErrClosed
	}
	return err
}
