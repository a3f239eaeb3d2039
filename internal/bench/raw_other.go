//go:build !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData is what os.File.Sync is, on macOS F_FULLFSYNC.
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
