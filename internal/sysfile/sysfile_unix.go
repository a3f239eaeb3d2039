//go:build unix

package sysfile

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stat returns the metadata of the file at path. It follows links.
func Stat(path string) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(path, &st)
		if err == nil {
			return infoOf(&st), nil
		}
		if err != unix.EINTR {
			return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// StatOpen returns the metadata of an open file.
func StatOpen(fd int) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstat(fd, &st)
		if err != unix.EINTR {
			return infoOf(&st), err
		}
	}
}

func infoOf(st *unix.Stat_t) Info {
	return Info{
		Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()), ChangeTime: time.Unix(st.Ctim.Unix()),
		Inode: uint64(st.Ino), Device: uint64(st.Dev), Links: uint64(st.Nlink),
	}
}

// CheckWritable returns an error unless the process may write the file or the folder.
func CheckWritable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// Owned reports whether the file belongs to the user of this process.
func Owned(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && int(st.Uid) == os.Geteuid()
}

// Room returns the number of bytes that are free on the disk of path.
func Room(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
