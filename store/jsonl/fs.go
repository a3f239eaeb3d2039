package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/sysfile"
)

// FS is the directory of a store. Names are relative to it and use slashes. The store
// makes all changes through an FS and its Files, so a test can make any change fail or
// disappear.
//
// Errors match fs.ErrNotExist and fs.ErrExist where these apply. All methods may be
// called concurrently.
type FS interface {
	// MakeRoot creates the directory and its parents, if missing.
	MakeRoot() error
	// Mkdir creates a directory inside the root.
	Mkdir(name string) error
	// Open opens a regular file with the flags of os.OpenFile. It returns an error that
	// matches eventlog.ErrNotRegular for any other file, and never waits for one. New
	// files are readable and writable by their owner only.
	Open(name string, flag int) (File, error)
	// Rename replaces an existing file.
	Rename(from, to string) error
	Remove(name string) error
	Stat(name string) (Info, error)
	// ReadDir lists a directory in any order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Path returns the path of a file, for locks of the operating system. It is "" if
	// the files are not in a directory of the operating system: then other stores do
	// not know of the store's leases.
	Path(name string) string
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
	// TryLock takes the file's advisory lock, or returns false if another open file
	// holds it.
	TryLock(exclusive bool) (bool, error)
	Unlock() error
}

// Info is the file metadata that the store uses.
type Info struct {
	Size    int64
	ModTime time.Time
	Inode   uint64
	// Links counts the file's names: 0 after the file was removed. The store only tests
	// for 0.
	Links uint64
}

// Dir returns the FS of an operating system directory. All access stays inside the
// directory (os.Root). The directory need not exist yet.
func Dir(path string) FS { return &osFS{dir: path} }

type osFS struct {
	dir    string
	mu     sync.Mutex // guards opening the directory
	opened atomic.Pointer[openDir]
}

// openDir is an open directory.
type openDir struct {
	*os.Root
	self  *os.File // the directory itself, for fstatat and fsync
	path  string   // absolute
	inode uint64
}

// checkPlace returns ErrMoved if the path leads to another directory now.
func (d *openDir) checkPlace() error {
	switch info, err := sysfile.Stat(d.path); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && info.Inode != d.inode:
		return &fs.PathError{Op: "open", Path: d.path, Err: eventlog.ErrMoved}
	}
	return nil // another error says nothing about the directory that is open
}

func (o *osFS) MakeRoot() error {
	if _, err := o.root(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := folder.Make(o.dir); err != nil {
		return err
	}
	_, err := o.root()
	return err
}

// root opens the directory on the first call after it exists.
func (o *osFS) root() (*openDir, error) {
	if root := o.opened.Load(); root != nil {
		return root, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if root := o.opened.Load(); root != nil {
		return root, nil
	}
	if info, err := os.Stat(o.dir); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: o.dir, Err: syscall.ENOTDIR} // opening a pipe would wait
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	opened := &openDir{Root: root, self: self}
	if err := opened.identify(o.dir); err != nil {
		return nil, errors.Join(err, self.Close(), root.Close())
	}
	o.opened.Store(opened)
	return opened, nil
}

// identify sets the path and the inode.
func (d *openDir) identify(dir string) (err error) {
	info, err := sysfile.StatOpen(int(d.self.Fd()))
	if err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	d.inode = info.Inode
	d.path, err = filepath.Abs(dir)
	return err
}

func (o *osFS) Path(name string) string {
	dir := o.dir
	if opened := o.opened.Load(); opened != nil {
		dir = opened.path // a relative dir depends on the working directory
	}
	return filepath.Join(dir, name)
}

// place is root, or ErrMoved if the path leads to another directory now.
func (o *osFS) place() (*openDir, error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	return root, root.checkPlace()
}

func (o *osFS) Mkdir(name string) error {
	root, err := o.root()
	if err != nil {
		return err
	}
	return root.Mkdir(name, 0o700)
}

func (o *osFS) Open(name string, flag int) (File, error) {
	root, err := o.place()
	if err != nil {
		return nil, err
	}
	f, err := regular.OpenIn(root, name, filepath.Join(o.dir, name), flag, 0o600)
	if err != nil {
		return nil, o.located(err)
	}
	return &osFile{File: f, fd: int(f.Fd())}, nil
}

// located adds the directory to the path in an error of os.Root.
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
	return renameError(root.Rename(from, to))
}

func (o *osFS) Remove(name string) error {
	root, err := o.root()
	if err != nil {
		return err
	}
	return root.remove(name)
}

func (o *osFS) Stat(name string) (Info, error) {
	root, err := o.root()
	if err != nil {
		return Info{}, err
	}
	// One call by the path is enough for most appends: if the path leads to another
	// directory, the file there has another inode, or there is no file.
	if name != "." {
		if info, err := sysfile.Stat(root.path + "/" + name); err == nil {
			return infoOf(info), nil
		}
	}
	if err := root.checkPlace(); err != nil {
		return Info{}, err
	}
	return root.stat(name)
}

func infoOf(info sysfile.Info) Info {
	return Info{Size: info.Size, ModTime: info.ModTime, Inode: info.Inode, Links: info.Links}
}

func (o *osFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := o.openList(name)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for {
		some, err := f.ReadDir(1024)
		for _, e := range some {
			entries = append(entries, dirEntry{e.Name(), e.Type()})
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err != nil || len(some) == 0 {
			return entries, errors.Join(err, f.Close())
		}
	}
}

// dirEntry is a fs.DirEntry without the path of its folder: a store may have many.
type dirEntry struct {
	name string
	kind fs.FileMode
}

func (e dirEntry) Name() string               { return e.name }
func (e dirEntry) IsDir() bool                { return e.kind.IsDir() }
func (e dirEntry) Type() fs.FileMode          { return e.kind }
func (e dirEntry) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func (o *osFS) openDir(name string) (*os.File, error) {
	root, err := o.place()
	if err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDONLY|onlyFolder, 0)
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

// osFile is an os.File with its descriptor.
type osFile struct {
	*os.File
	fd int
}

func (f *osFile) Sync() error { return syncData(f.File, f.fd) }

func (f *osFile) Stat() (Info, error) {
	info, err := sysfile.StatOpen(f.fd)
	return infoOf(info), err
}

func (f *osFile) TryLock(exclusive bool) (bool, error) { return flock.Try(f.fd, exclusive) }

func (f *osFile) Unlock() error { return flock.Unlock(f.fd) }

// retryFS is an FS that closes the files of idle sessions and tries again when no file
// descriptor is left.
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
	for wait := time.Millisecond; outOfDescriptors(err) && wait <= maxDescriptorWait; wait *= 2 {
		if !s.cache.closeIdle() {
			time.Sleep(wait) // others use their files for a moment, or close them just now
		}
		err = open()
	}
	return err
}

// maxDescriptorWait is the last and longest wait for a file descriptor.
const maxDescriptorWait = 64 * time.Millisecond

// outOfDescriptors reports whether the process or the system has no file descriptor
// left.
func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
