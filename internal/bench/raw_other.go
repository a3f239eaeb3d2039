//go:build unix && !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData does the same as os.File.Sync: on macOS F_FULLFSYNC.
func syncData(fd int) error {
	copied, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(copied), "")
	defer f.Close()
	return f.Sync()
}

func inMemory(string) bool { return false }
