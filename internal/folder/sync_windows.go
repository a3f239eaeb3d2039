package folder

import (
	"errors"
	"os"
)

// Sync makes the content of a file durable. Windows syncs no folder: its file systems
// write names to a journal.
func Sync(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs only a file that is open for writing
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
