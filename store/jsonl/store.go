package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
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
	// Periodic syncs in the background. A loss of power may cost the appends of the
	// last Options.Every.
	Periodic
	// Never leaves syncing to the operating system until Close, or until 4 MiB of a
	// session are not synced. A loss of power may cost these appends.
	Never
)

// Options configure a Store. The zero value is right for most.
type Options struct {
	// ReadOnly makes every change answer ErrReadOnly. Nothing is created or cut.
	ReadOnly bool
	// Sync is the policy of appends that do not demand durability themselves.
	Sync SyncPolicy
	// Every is the time between the syncs of Periodic; one second if 0.
	Every time.Duration
	// OpenFiles bounds how many files of idle sessions are kept open; 256 if 0.
	// They are closed as well when the process has no descriptor left.
	OpenFiles int
	// LockTimeout bounds how long a lock that another process holds is waited for;
	// then the answer is ErrLocked. Without it the context alone does.
	LockTimeout time.Duration
	// FS replaces the directory of the operating system.
	FS FS
}

// Store keeps a log in a directory. It implements eventlog.Store, Blobs, Locker,
// Rewriter, Remover, Sweeper, Syncer and Versioner. All methods may be called concurrently.
type Store struct {
	dir  string
	opts Options
	fs   FS

	cache   cache
	closing chan struct{} // closed by Close: whoever waits gives up
	once    sync.Once
	closed  error

	dirty unsyncedSet
	blobDirs  blobDirs
	holeFree holeFree
}

// New makes a store of the directory dir. It touches nothing: the directory is
// made at the first write, and errors surface at the first use.
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
	s.fs = &retryFS{s.fs, &s.cache}
	s.cache.init(s.opts.OpenFiles)
	s.dirty.sessions = make(map[string]struct{})
	return s
}

// Close waits for the appends that are being written, syncs what was
// acknowledged without, and closes the files. Appends that still wait for a
// lock, and all later calls, answer ErrClosed.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.cache.drain()
		s.dirty.syncer.Wait()
		errs := []error{s.syncDirty()}
		errs = append(errs, s.cache.closeAll(), s.fs.Close())
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

// usable refuses a closed store.
func (s *Store) usable(verb, session string) error {
	if s.isClosed() {
		return fmt.Errorf("%s %q: %w", verb, session, eventlog.ErrClosed)
	}
	return nil
}

// writable refuses a store that must not change.
func (s *Store) writable(verb, session string) error {
	if s.opts.ReadOnly {
		return fmt.Errorf("%s %q: %w", verb, session, eventlog.ErrReadOnly)
	}
	return s.usable(verb, session)
}

// path is a name of the directory for people.
func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// isAbsent reports that a file, or the whole directory, does not exist.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
