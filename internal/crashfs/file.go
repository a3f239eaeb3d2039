package crashfs

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/convlog/convlog/store/jsonl"
)

// File is an open file of a process. It implements jsonl.File.
type File struct {
	fs     *FS
	node   *node
	name   string
	flag   int
	at     int64 // offset of the next write, without O_APPEND
	closed bool
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (n int, err error) {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	err = f.fs.do("write", f.name, len(b), func(fault Fault) error {
		if f.closed {
			return pathError("write", f.name, fs.ErrClosed)
		}
		if n = len(b); fault.Err != nil && !fault.Done {
			n = min(n, fault.Bytes)
		}
		if f.flag&os.O_APPEND != 0 {
			f.at = int64(len(f.node.data))
		}
		f.node.write(f.at, b[:n])
		f.at += int64(n)
		f.node.changed = f.fs.disk.now()
		return nil
	})
	return n, err
}

// Truncate implements jsonl.File.
func (f *File) Truncate(size int64) error {
	return f.fs.do("truncate", f.name, 0, func(Fault) error {
		if f.closed {
			return pathError("truncate", f.name, fs.ErrClosed)
		}
		f.node.truncate(size)
		f.node.changed = f.fs.disk.now()
		return nil
	})
}

// Sync implements jsonl.File.
func (f *File) Sync() error {
	return f.fs.do("sync", f.name, 0, func(fault Fault) error {
		switch {
		case f.closed:
			return pathError("sync", f.name, fs.ErrClosed)
		case fault.Lost:
			f.node.syncPartly(f.fs.disk.chooser())
		default:
			f.node.sync()
		}
		return nil
	})
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	f.fs.disk.mu.Lock()
	defer f.fs.disk.mu.Unlock()
	if err := f.usable("read"); err != nil {
		return 0, err
	}
	if at >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Stat implements jsonl.File.
func (f *File) Stat() (jsonl.Info, error) {
	f.fs.disk.mu.Lock()
	defer f.fs.disk.mu.Unlock()
	if err := f.usable("stat"); err != nil {
		return jsonl.Info{}, err
	}
	return f.node.info(), nil
}

// TryLock implements jsonl.File.
func (f *File) TryLock(exclusive bool) (bool, error) {
	f.fs.disk.mu.Lock()
	defer f.fs.disk.mu.Unlock()
	if err := f.usable("lock"); err != nil {
		return false, err
	}
	for other, theirs := range f.node.locks {
		if other != f && (exclusive || theirs) {
			return false, nil
		}
	}
	f.node.locks[f] = exclusive
	return true, nil
}

// Unlock implements jsonl.File.
func (f *File) Unlock() error {
	f.fs.disk.mu.Lock()
	defer f.fs.disk.mu.Unlock()
	if err := f.usable("unlock"); err != nil {
		return err
	}
	delete(f.node.locks, f)
	return nil
}

// Close implements io.Closer and releases the lock.
func (f *File) Close() error {
	f.fs.disk.mu.Lock()
	defer f.fs.disk.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.close()
	return nil
}

func (f *File) close() {
	f.closed = true
	delete(f.fs.open, f)
	delete(f.node.locks, f)
	f.node.opens--
	f.fs.disk.freeInode(f.node)
}

func (f *File) usable(op string) error {
	if f.fs.killed {
		return pathError(op, f.name, ErrKilled)
	}
	if f.closed {
		return pathError(op, f.name, fs.ErrClosed)
	}
	return nil
}
