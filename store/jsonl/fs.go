package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/internal/flock"
)

// FS is the directory of a store, as the store sees it: names are relative to
// it and use slashes. Everything the store changes on disk goes through an FS
// and its Files, so that a test can fail or forget any single change.
//
// Errors match fs.ErrNotExist and fs.ErrExist where those apply. All methods
// may be called concurrently.
type FS interface {
	// MakeRoot creates the directory itself, and its parents, if missing.
	MakeRoot() error
	// Mkdir creates a directory below it.
	Mkdir(name string) error
	// Open opens a file with the flags of os.OpenFile; a file it creates is
	// for its owner only.
	Open(name string, flag int) (File, error)
	// Rename replaces what stands at the new name.
	Rename(from, to string) error
	Remove(name string) error
	Stat(name string) (Info, error)
	// ReadDir lists a directory in any order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	Close() error
}

// File is an open file of an FS.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	// Sync makes the content and the size durable.
	Sync() error
	Stat() (Info, error)
	// TryLock takes the file's advisory lock if that is possible at once.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
}

// Info is what the store needs to know of a file.
type Info struct {
	Size    int64
	ModTime time.Time
	Inode   uint64
	// Links is how many names the file has: 0 once it was removed. The store
	// asks only whether it is 0.
	Links uint64
}

// Dir is the FS of a directory of the operating system, confined to it by
// os.Root. The directory need not exist yet.
func Dir(path string) FS { return &osFS{dir: path} }

type osFS struct {
	dir    string
	mu     sync.Mutex // of those who open it
	opened atomic.Pointer[openDir]
}

// openDir is a directory that was found.
type openDir struct {
	*os.Root
	self *os.File // the directory itself
}

func (o *osFS) MakeRoot() error {
	if _, err := o.root(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := missingDirs(o.dir)
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := syncPath(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	_, err := o.root()
	return err
}

// missingDirs lists dir and those of its parents that do not exist.
func missingDirs(dir string) (missing []string) {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
	}
}

// root opens the directory at the first call that finds it.
func (o *osFS) root() (*openDir, error) {
	if root := o.opened.Load(); root != nil {
		return root, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if root := o.opened.Load(); root != nil {
		return root, nil
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	opened := &openDir{root, self}
	o.opened.Store(opened)
	return opened, nil
}

func (o *osFS) Mkdir(name string) error {
	root, err := o.root()
	if err != nil {
		return err
	}
	return root.Mkdir(name, 0o700)
}

func (o *osFS) Open(name string, flag int) (File, error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, o.located(err)
	}
	return &osFile{File: f, fd: int(f.Fd())}, nil
}

// located names the file in full, which os.Root leaves to its callers.
func (o *osFS) located(err error) error {
	if at, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: "open", Path: filepath.Join(o.dir, at.Path), Err: at.Err}
	}
	return err
}

func (o *osFS) Rename(from, to string) error {
	root, err := o.root()
	if err != nil {
		return err
	}
	return root.Rename(from, to)
}

func (o *osFS) Remove(name string) error {
	root, err := o.root()
	if err != nil {
		return err
	}
	return root.Remove(name)
}

func (o *osFS) Stat(name string) (Info, error) {
	root, err := o.root()
	if err != nil {
		return Info{}, err
	}
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(root.self.Fd()), name, &st, 0)
		if err == nil {
			return infoOf(&st), nil
		}
		if err != unix.EINTR {
			return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
}

func infoOf(st *unix.Stat_t) Info {
	return Info{Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()), Inode: st.Ino, Links: uint64(st.Nlink)}
}

func (o *osFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := o.openDir(name)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

func (o *osFS) SyncDir(name string) error {
	if name == "." {
		root, err := o.root()
		if err != nil {
			return err
		}
		return root.self.Sync()
	}
	f, err := o.openDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (o *osFS) openDir(name string) (*os.File, error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	return root.Open(name)
}

func (o *osFS) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	root := o.opened.Load()
	if root == nil {
		return nil
	}
	return errors.Join(root.self.Close(), root.Close())
}

func syncPath(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// osFile is an os.File whose descriptor is at hand for what os lacks.
type osFile struct {
	*os.File
	fd int
}

func (f *osFile) Sync() error { return syncData(f.File, f.fd) }

func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstat(f.fd, &st)
		if err != unix.EINTR {
			return infoOf(&st), err
		}
	}
}

func (f *osFile) TryLock(exclusive bool) (bool, error) { return flock.Try(f.fd, exclusive) }

func (f *osFile) Unlock() error { return flock.Unlock(f.fd) }

// spareFS is an FS that closes the files of idle sessions when the process has
// no descriptor left, and tries again.
type retryFS struct {
	FS
	cache *cache
}

func (s *retryFS) Open(name string, flag int) (file File, err error) {
	return file, s.retry(func() error {
		file, err = s.FS.Open(name, flag)
		return err
	})
}

func (s *retryFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	return entries, s.retry(func() error {
		entries, err = s.FS.ReadDir(name)
		return err
	})
}

func (s *retryFS) SyncDir(name string) error {
	return s.retry(func() error { return s.FS.SyncDir(name) })
}

func (s *retryFS) MakeRoot() error { return s.retry(s.FS.MakeRoot) }

func (s *retryFS) retry(open func() error) error {
	err := open()
	if outOfDescriptors(err) && s.cache.closeIdle() {
		err = open()
	}
	return err
}

// exhausted reports that there was no descriptor left, of the process or of
// the system.
func outOfDescriptors(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}
