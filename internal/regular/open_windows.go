package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// noWait is 0: an open waits for nothing on Windows.
const noWait = 0

// openFile opens a file through its folder. os.OpenFile opens files without
// FILE_SHARE_DELETE, and Windows renames and removes no such file while it is open. os.Root
// shares all.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if name, err = filepath.EvalSymlinks(name); err != nil { // a Root follows no link out of its folder
			return nil, err
		}
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.Base(name), flag, perm)
	if err := root.Close(); err != nil && f != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, err
}
