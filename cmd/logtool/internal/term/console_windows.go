package term

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// SetUpConsole makes the console interpret escape sequences, for example of colours.
func SetUpConsole() {
	for _, output := range []windows.Handle{windows.Stdout, windows.Stderr} {
		var mode uint32
		if windows.GetConsoleMode(output, &mode) == nil {
			_ = windows.SetConsoleMode(output, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) // Windows 10 has it
		}
	}
}

// consoleWidth is the width of a console window in columns; 0 if fd is no console.
func consoleWidth(fd int) int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(fd), &info) != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}

// PipeClosed reports whether err is of a write to a pipe without a reader.
func PipeClosed(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA) || errors.Is(err, syscall.EPIPE)
}
