// Package regular opens regular files only. A named pipe, a device or a link in the
// place of a file would block the opening, or each use of the file, forever.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Err is matched by every *Error.
var Err = errors.New("not a regular file")

// Error reports a path that should be a regular file and is something else.
type Error struct {
	Path string
	Mode fs.FileMode // the type bits; see Kind
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s is a %s, not a regular file", e.Path, e.Kind())
}

// Is matches Err.
func (e *Error) Is(target error) bool { return target == Err }

// Kind is the name of the file's type.
func (e *Error) Kind() string {
	switch {
	case e.Mode.IsRegular():
		return "regular file"
	case e.Mode&fs.ModeDir != 0:
		return "folder"
	case e.Mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case e.Mode&fs.ModeSocket != 0:
		return "socket"
	case e.Mode&fs.ModeDevice != 0:
		return "device"
	case e.Mode&fs.ModeSymlink != 0:
		return "symbolic link"
	default:
		return "special file"
	}
}

// Folder opens the files of a folder; os.Root implements it.
type Folder interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Lstat(name string) (fs.FileInfo, error)
}

// Open is os.OpenFile for regular files. Another kind of file is an *Error. An open file
// can be renamed, replaced and removed, also on Windows.
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return OpenIn(system{}, path, path, flag, perm)
}

// system has all files.
type system struct{}

func (system) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFile(name, flag, perm)
}

func (system) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// OpenIn is Open for a file in a folder. path is the file's path in an *Error. With
// O_CREATE a link is an *Error too: the new file would be at another path.
func OpenIn(folder Folder, name, path string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := notRegular(folder, name, path); err != nil {
			return nil, err
		}
	}
	f, err := folder.OpenFile(name, flag|noWait, perm)
	if err != nil {
		if special := notRegular(folder, name, path); special != nil {
			return nil, special
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &Error{Path: path, Mode: info.Mode().Type()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// notRegular returns an *Error if the name exists and is no regular file.
func notRegular(folder Folder, name, path string) error {
	info, err := folder.Lstat(name)
	if err != nil || info.Mode().IsRegular() {
		return nil
	}
	return &Error{Path: path, Mode: info.Mode().Type()}
}

// Check returns an *Error if the path exists and leads to no regular file. It opens
// nothing.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil { // missing, or a link that leads nowhere
		info, err = os.Lstat(path)
	}
	if err != nil || info.Mode().IsRegular() {
		return nil
	}
	return &Error{Path: path, Mode: info.Mode().Type()}
}
