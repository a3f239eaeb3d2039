package jsonl

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	sys "golang.org/x/sys/windows"

	"github.com/convlog/convlog/internal/sysfile"
)

// onlyFolder is 0: to list another file than a folder fails.
const onlyFolder = 0

// stat returns the metadata of a file in the directory, which may have another path now.
func (d *openDir) stat(name string) (Info, error) {
	f, err := d.Open(name)
	if err != nil {
		return Info{}, err
	}
	info, err := sysfile.StatOpen(int(f.Fd()))
	return infoOf(info), errors.Join(err, f.Close())
}

// openList opens a directory for ReadDir.
func (o *osFS) openList(name string) (*os.File, error) { return o.openDir(name) }

// SyncDir does nothing: the file systems of Windows write names to a journal.
func (o *osFS) SyncDir(string) error { return nil }

// Truncate changes the size of the file. A file that is open for appending only may not be
// truncated, so Truncate opens it again.
func (f *osFile) Truncate(size int64) error {
	again, err := reopen(f.fd)
	if err != nil {
		return &os.PathError{Op: "truncate", Path: f.Name(), Err: err}
	}
	writable := os.NewFile(uintptr(again), f.Name())
	return errors.Join(writable.Truncate(size), writable.Close())
}

var reOpenFile = sys.NewLazySystemDLL("kernel32.dll").NewProc("ReOpenFile")

// reopen opens an open file again, for writing. The file may have another name now.
func reopen(fd int) (sys.Handle, error) {
	const shareAll = sys.FILE_SHARE_READ | sys.FILE_SHARE_WRITE | sys.FILE_SHARE_DELETE
	h, _, err := reOpenFile.Call(uintptr(fd), sys.GENERIC_WRITE, shareAll, 0)
	if sys.Handle(h) == sys.InvalidHandle {
		return 0, err
	}
	return sys.Handle(h), nil
}

// renameError names the remedy where a file system cannot replace a file that is open.
func renameError(err error) error {
	if errors.Is(err, sys.ERROR_ACCESS_DENIED) || errors.Is(err, sys.ERROR_SHARING_VIOLATION) {
		return fmt.Errorf("%w (the file system must replace files that are open: keep the store on NTFS)", err)
	}
	return err
}

// Write returns an error that matches syscall.ENOSPC if the disk is full, as on Unix.
func (f *osFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if errors.Is(err, sys.ERROR_DISK_FULL) || errors.Is(err, sys.ERROR_HANDLE_DISK_FULL) {
		err = fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return n, err
}

// remove removes a file. The file of a session gets another name first: where a file that is
// open keeps its name until it is closed (other file systems than NTFS), another handle would
// append to it, and lose the events.
func (d *openDir) remove(name string) error {
	if session, ok := strings.CutSuffix(name, extension); ok {
		if err := d.Rename(name, session+rewriteSuffix); err != nil {
			return err
		}
		name = session + rewriteSuffix // Sweep removes it if the process ends here
	}
	return d.Remove(name)
}
