//go:build !linux

package notify

// WatchFolder returns false: it needs Linux.
func WatchFolder(string, func(name string)) (stop func(), ok bool) { return nil, false }
