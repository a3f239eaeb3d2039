package jsonl

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs the content and the size, not the times.
func syncData(_ *os.File, fd int) error {
	for {
		err := unix.Fdatasync(fd)
		if err != unix.EINTR {
			return err
		}
	}
}
