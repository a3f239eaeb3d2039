package jsonl

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/convlog/convlog/internal/lease"
	"github.com/convlog/convlog/internal/notify"
)

// SyncPolicy says when an append is synced to disk. No policy loses an event when a
// process dies. The policies differ in the events that a loss of power can lose.
type SyncPolicy int

const (
	// Always syncs each append before the append returns. A loss of power loses
	// nothing.
	Always SyncPolicy = iota
	// Periodic syncs in the background. A loss of power can lose the appends of the
	// last Options.Every.
	Periodic
	// Never leaves syncing to the operating system. The store syncs on Close, and when
	// 4 MiB of a session are unsynced. A loss of power can lose the unsynced appends.
	Never
)

// Options configure a Store. The zero value is the safe default.
type Options struct {
	// ReadOnly makes every change return ErrReadOnly. The store creates no file and
	// truncates no torn tail.
	ReadOnly bool
	// Sync is the policy for appends that do not ask for durability.
	Sync SyncPolicy
	// Every is the time between syncs with Periodic; 0 is one second.
	Every time.Duration
	// OpenFiles bounds the open files of idle sessions; 0 is 256. They are also closed
	// when the process has no file descriptor left.
	OpenFiles int
	// LockTimeout bounds the wait for a lock of another process; then the call returns
	// ErrLocked. With 0 only the context ends the wait.
	LockTimeout time.Duration
	// FS replaces the operating system's directory, for tests.
	FS FS
}

// Store keeps a log in a directory. It implements eventlog.Store and, from eventlog,
// Blobs, Cataloger, Checker, Eraser, Leaser, Lister, Locker, Notifier, Salvager, Sweeper,
// Syncer, TailKeeper and Versioner.
// All methods may be called concurrently.
type Store struct {
	dir  string
	opts Options
	fs   FS

	leases  *lease.Table
	changes *notify.Hub
	cache   cache
	calls   calls
	closing chan struct{} // closed by Close: ends all waits
	once    sync.Once
	closed  error

	unsynced unsyncedSet
	blobDirs blobDirs
	holeFree holeFree
	saved    savedFiles
}

// New returns a store of the directory dir. It does no I/O: the first write creates the
// directory, and errors appear at the first use.
func New(dir string, opts ...Options) *Store {
	s := &Store{dir: dir, closing: make(chan struct{})}
	if len(opts) > 0 {
		s.opts = opts[0]
	}
	if s.opts.OpenFiles <= 0 {
		s.opts.OpenFiles = 256
	}
	if s.opts.Every <= 0 {
		s.opts.Every = time.Second
	}
	s.fs = s.opts.FS
	if s.fs == nil {
		s.fs = Dir(dir)
	}
	s.leases = s.newLeases()
	s.changes = notify.New(s.newPoller)
	s.fs = &retryFS{s.fs, &s.cache}
	s.calls.running.Store(1) // the open store
	s.cache.init(s.opts.OpenFiles)
	s.unsynced.sessions = make(map[string]struct{})
	return s
}

// Close waits for appends in progress, syncs unsynced appends, ends the leases and closes
// the files.
// Appends that wait for a lock, and all later calls, return ErrClosed. A read or a
// listing in progress returns ErrClosed at its next step, and closes its own file.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.cache.drain()
		s.unsynced.syncer.Wait()
		errs := []error{s.syncUnsynced()}
		errs = append(errs, s.cache.closeAll(), s.leases.Close(), s.endCall())
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// path returns the path of a file, for messages.
func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// isAbsent reports whether err means that a file or the directory does not exist.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
