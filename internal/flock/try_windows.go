package flock

import (
	"errors"

	"golang.org/x/sys/windows"
)

// Windows refuses reads and writes of the bytes that another open file has locked. The one
// byte of the lock is beyond the end of any file, at 1<<62, so the lock is advisory.
func lockByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// Try takes the lock of the open file fd, or returns false if another open file has it.
// It converts a lock that fd already has; a conversion that fails loses the lock, as on Unix.
func Try(fd int, exclusive bool) (bool, error) {
	if err := Unlock(fd); err != nil { // Windows would refuse a second lock, or stack it
		return false, err
	}
	var how uint32 = windows.LOCKFILE_FAIL_IMMEDIATELY
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(fd), how, 0, 1, 0, lockByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of the open file fd.
func Unlock(fd int) error {
	err := windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, lockByte())
	if errors.Is(err, windows.ERROR_NOT_LOCKED) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) { // the second from Wine 8
		return nil
	}
	return err
}
