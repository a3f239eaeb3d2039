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

// Options configure a Store. The zero value is the safe default: each append is synced
// before it returns, and a loss of power loses nothing. No option loses an event when a
// process dies.
type Options struct {
	// ReadOnly makes every change return ErrReadOnly. The store creates no file and
	// truncates no torn tail.
	ReadOnly bool
	// SyncEvery, if not 0, syncs in the background, at this interval, the appends that do
	// not ask for durability. A loss of power can lose the newest of them.
	SyncEvery time.Duration
	// NoSync leaves the syncs of appends that do not ask for durability to the operating
	// system. The store syncs on Close, and when 4 MiB of a session are unsynced. A loss of
	// power can lose the unsynced appends.
	NoSync bool
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
// Blobs, Cataloger, Checker, Eraser, Identifier, Leaser, Lister, Locker, Notifier, Salvager, Sweeper,
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
	putting  sync.Mutex // held while files of the catalog are replaced
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
		s.changes.Close()
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
