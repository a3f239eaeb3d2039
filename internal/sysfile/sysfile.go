// Package sysfile asks the operating system about files: which file a path leads to, whether
// it may be written, and how much room its disk has.
package sysfile

import "time"

// Info is the metadata of a file.
type Info struct {
	Size    int64
	ModTime time.Time
	// ChangeTime is the time of the last change of content, metadata or name; no program can set
	// it. It is zero if the file system has none.
	ChangeTime time.Time
	// Inode identifies the file on its Device. On Windows it is the file index.
	Inode, Device uint64
	Links         uint64 // the number of the file's names
}
