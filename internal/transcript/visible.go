package transcript

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible makes a text safe to display. Control characters become control pictures, the
// characters that put text in another order become escapes such as \u202e, invalid UTF-8
// becomes U+FFFD, and line ends become newlines.
func Visible(text string) string {
	if strings.IndexFunc(text, isControl) < 0 && utf8.ValidString(text) {
		return text
	}
	var safe strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case !isControl(r):
			safe.WriteRune(r) // U+FFFD for an invalid byte
		case r < 0x20:
			safe.WriteRune('\u2400' + r)
		case r == 0x7f:
			safe.WriteRune('\u2421')
		case r < 0xa0:
			safe.WriteRune(utf8.RuneError)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return safe.String()
}

// isControl reports control characters, and the embeddings, overrides and isolates that put text
// in another order than it has.
func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

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
