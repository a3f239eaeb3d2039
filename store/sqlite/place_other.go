//go:build !linux

package sqlite

// inodeAt returns the inode of the file at path.
func inodeAt(path string) (uint64, error) { return statInode(path) }
