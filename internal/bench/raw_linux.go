package main

import "golang.org/x/sys/unix"

func syncData(fd int) error { return unix.Fdatasync(fd) }

// inMemory reports whether a folder is in memory.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}
