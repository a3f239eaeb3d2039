// Package term writes to a terminal: text that fits and is safe, tables, a pager, and a line
// about progress. It also writes to files and pipes, where nothing is cut, broken or coloured.
package term

import (
	"io"
	"os"
	"strings"

	"github.com/convlog/convlog/internal/terminal"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Width is the number of columns of a terminal; 0 if it is unknown.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return consoleWidth(int(f.Fd()))
}

// OneLine joins the lines of a text.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Brief joins text to one line, makes it safe for a terminal and shortens it to n columns.
func Brief(text string, n int) string {
	text = terminal.Clean(OneLine(text))
	if terminal.Columns(text) <= n {
		return text
	}
	return strings.TrimRight(firstColumns(text, n-1), " ") + "…"
}

// firstColumns is the beginning of a line, in at most n columns.
func firstColumns(line string, n int) string {
	width := 0
	for i, r := range line {
		if width += terminal.RuneColumns(r); width > n {
			return line[:i]
		}
	}
	return line
}
