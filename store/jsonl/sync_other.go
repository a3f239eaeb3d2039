//go:build !linux

package jsonl

import "os"

// syncData writes the file to disk. On macOS os.File.Sync is F_FULLFSYNC, which
// empties the drive's own cache too; there is no fdatasync to prefer.
func syncData(f *os.File, _ int) error { return f.Sync() }
