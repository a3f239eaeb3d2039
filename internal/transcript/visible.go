package transcript

import (
	"strings"
	"unicode/utf8"
)

// Visible makes a text safe to display. Control characters become control pictures,
// invalid UTF-8 becomes U+FFFD, and line ends become newlines.
func Visible(text string) string {
	if strings.IndexFunc(text, isControl) < 0 && utf8.ValidString(text) {
		return text
	}
	return strings.Map(visible, strings.ReplaceAll(text, "\r\n", "\n"))
}

func visible(r rune) rune {
	switch {
	case !isControl(r):
		return r
	case r < 0x20:
		return '\u2400' + r
	case r == 0x7f:
		return '\u2421'
	}
	return utf8.RuneError
}

func isControl(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 }

// Lines counts the lines of a text.
func Lines(text string) int { return strings.Count(strings.TrimRight(text, "\n"), "\n") + 1 }

// Gist returns the beginning of a text, on one line.
func Gist(text string) string {
	const most = 120
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if utf8.RuneCountInString(line) > most {
		return strings.TrimSpace(string([]rune(line)[:most])) + "…"
	}
	if more {
		return line + " …"
	}
	return line
}
