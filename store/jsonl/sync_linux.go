package jsonl

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData writes the content and the size to disk, without the times.
func syncData(_ *os.File, fd int) error {
	for {
		err := unix.Fdatasync(fd)
		if err != unix.EINTR {
			return err
		}
	}
}
