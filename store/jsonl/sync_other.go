//go:build !linux

package jsonl

import "os"

// syncData syncs the file. On macOS os.File.Sync uses F_FULLFSYNC, which also flushes
// the drive's cache.
func syncData(f *os.File, _ int) error { return f.Sync() }
