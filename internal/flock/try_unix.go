//go:build unix

package flock

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Try takes the lock of the open file fd, or returns false if another open file has it.
// It converts a lock that fd already has.
func Try(fd int, exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	err := flock(fd, how)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of the open file fd.
func Unlock(fd int) error { return flock(fd, unix.LOCK_UN) }

func flock(fd, how int) error {
	for {
		err := unix.Flock(fd, how)
		if err != unix.EINTR {
			return err
		}
	}
}
