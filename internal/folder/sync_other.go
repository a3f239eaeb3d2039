//go:build !windows

package folder

import (
	"errors"
	"os"
)

// Sync makes the content of a file, or the names in a folder, durable.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
