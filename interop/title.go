package interop

import "strings"

// titleLength is how many runes of a text become a title.
const titleLength = 80

// Title is the first line of a text, its white space made single spaces, cut.
func Title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if runes := []rune(line); len(runes) > titleLength {
		return strings.TrimRight(string(runes[:titleLength-1]), " ") + "…"
	}
	return line
}
