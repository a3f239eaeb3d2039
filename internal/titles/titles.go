// Package titles makes titles of sessions.
package titles

import (
	"slices"
	"strings"
)

// titleLength is the longest title, in runes.
const titleLength = 80

// oneWord is the length of a title, in runes, whose first word is too long.
const oneWord = 20

// announcements precede what a program asks the model to do: a plan, or an issue.
var announcements = []string{
	"implement the following plan:", "please implement this plan:",
	"<task>", "<pr_description>", "consider the following pr description:",
}

// Of is the first line of a text, with single spaces, shortened to 80 runes. If the
// line announces a plan or an issue, the title is the heading after it. It has no part of a
// long word: masks of secrets and paths find whole ones only.
func Of(text string) string {
	line, rest := firstLine(text)
	for rest != "" && slices.Contains(announcements, strings.ToLower(line)) {
		line, rest = firstLine(strings.TrimLeft(rest, "# "))
	}
	if runes := []rune(line); len(runes) > titleLength {
		end := titleLength - 1
		for end > 0 && inWord(runes[end-1]) && inWord(runes[end]) {
			end--
		}
		if end == 0 {
			end = oneWord
		}
		return strings.TrimRight(string(runes[:end]), " ") + "…"
	}
	return line
}

// inWord reports whether a character is a part of a word that has spaces around it.
func inWord(r rune) bool { return '!' <= r && r <= '~' }

// firstLine splits a text after its first line, without space around the two. The line has
// single spaces.
func firstLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.Join(strings.Fields(line), " "), strings.TrimSpace(rest)
}
