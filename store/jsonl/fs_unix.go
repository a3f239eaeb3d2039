//go:build unix

package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// onlyFolder makes an open fail for other files than folders.
const onlyFolder = unix.O_DIRECTORY

// stat returns the metadata of a file in the directory, which may have another path now.
func (d *openDir) stat(name string) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d.self.Fd()), name, &st, 0)
		if err == nil {
			return Info{Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()), Inode: uint64(st.Ino), Links: uint64(st.Nlink)}, nil
		}
		if err != unix.EINTR {
			return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
	}
}

// openList opens a directory for ReadDir. Each entry of a directory that os.Root has opened
// costs a call of lstat, so openList returns a file that is not known to come from it.
func (o *osFS) openList(name string) (*os.File, error) {
	f, err := o.openDir(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, &fs.PathError{Op: "open", Path: o.Path(name), Err: err}
	}
	return os.NewFile(uintptr(fd), o.Path(name)), nil
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

// renameError returns err.
func renameError(err error) error { return err }

func (d *openDir) remove(name string) error { return d.Remove(name) }
