//go:build unix

package term

import (
	"errors"

	"golang.org/x/sys/unix"
)

// SetUpConsole does nothing: a terminal of Unix needs no setting.
func SetUpConsole() {}

// consoleWidth is the width of a terminal in columns; 0 if fd is no terminal.
func consoleWidth(fd int) int {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// PipeClosed reports whether err is of a write to a pipe without a reader.
func PipeClosed(err error) bool { return errors.Is(err, unix.EPIPE) }
