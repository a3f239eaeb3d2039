package interop

import "strings"

// titleLength is the longest title, in runes.
const titleLength = 80

// Title is the first line of a text, with single spaces, shortened to 80 runes.
func Title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if runes := []rune(line); len(runes) > titleLength {
		return strings.TrimRight(string(runes[:titleLength-1]), " ") + "…"
	}
	return line
}
