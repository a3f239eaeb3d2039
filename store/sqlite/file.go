package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// createFile makes an empty database file, readable by its owner only, unless
// there is one that can be written. An existing file is never opened here:
// closing it would drop SQLite's locks on it.
func createFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return writable(path)
	}
	if err := createFolders(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncFolder(filepath.Dir(path)))
}

// writable asks the system whether the database and its folder, where the
// write-ahead log stands, may be written. SQLite would open a database that
// may not for reading, and its errors do not name the cause.
func writable(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		if err := unix.Access(name, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
	}
	return nil
}

// createFolders makes the missing folders of a path, durably.
func createFolders(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	parent := filepath.Dir(folder)
	if parent != folder {
		if err := createFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closing := d.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// stamp tells one state of the files of a database from another, as far as
// that can be seen without opening them.
type stamp struct {
	live    bool // there is a write-ahead log
	size    int64
	changed time.Time
	inode   uint64
}

// fileStamp gives a function that takes the stamp of the database at path.
func fileStamp(path string) func() (stamp, error) {
	return func() (stamp, error) {
		info, err := os.Stat(path)
		if err != nil {
			return stamp{}, err
		}
		_, err = os.Stat(path + "-wal")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stamp{}, err
		}
		return stamp{live: err == nil, size: info.Size(), changed: info.ModTime(), inode: inode(info)}, nil
	}
}

// dialReadOnly gives a function that opens a connection which writes nothing.
//
// A database without a write-ahead log is in nobody's use: it is opened as
// immutable, so that SQLite does not create the log and its index only to read
// an empty one. Whether it stays so is checked around every use.
func (s *Store) dialReadOnly() func(stamp) (*conn, error) {
	return func(at stamp) (*conn, error) {
		parameters := "mode=ro"
		if !at.live {
			parameters += "&immutable=1"
		}
		c, err := dial(s.path, parameters)
		if err != nil {
			return nil, err
		}
		kind, err := inspect(c)
		if err == nil {
			err = kind.checkReadable()
		}
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		return c, nil
	}
}

// inode identifies a file, so that one that was replaced is noticed.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
