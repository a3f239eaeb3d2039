// Package folder names the files of sessions in a folder, and makes folders and their
// names durable.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Make creates a folder and its parents with mode 0700, if they are missing. The names
// of the new folders are durable.
func Make(path string) error {
	missing := missing(path)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := Sync(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// missing returns path and its parents that do not exist, innermost first.
func missing(path string) (dirs []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, path)
	}
}

// Rename gives a file another name in its folder, and replaces the file that has the name,
// also while processes have both files open: os.Rename does not on Windows.
func Rename(from, to string) error {
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(root.Rename(filepath.Base(from), filepath.Base(to)), root.Close())
}
