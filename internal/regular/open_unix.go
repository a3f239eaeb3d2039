//go:build unix

package regular

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// noWait has the flags of an open that must not wait for the other end of a pipe or
// for a device, and must not change the controlling terminal.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
