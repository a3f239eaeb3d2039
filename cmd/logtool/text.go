package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/internal/terminal"
	"github.com/convlog/convlog/internal/transcript"
)

// ago writes a time relative to now, d before it.
func ago(d time.Duration, t time.Time) string {
	switch {
	case d < 0 || d >= 30*24*time.Hour:
		return t.Local().Format("2006-01-02 15:04")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h ago"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days ago"
}

// thousands writes 1234567 as 1,234,567.
func thousands[N int | int64](n N) string { return transcript.Thousands(int64(n)) }

// count writes a number with its noun: 1 session, 2 sessions.
func count[N int | int64](n N, noun string) string { return transcript.Count(int64(n), noun) }

// amount is a number of things.
type amount struct {
	n    int64
	noun string
}

// amounts joins the amounts that are not zero: 2 events and 1 blob. All zero is nothing.
func amounts(all ...amount) string {
	var words []string
	for _, x := range all {
		if x.n > 0 {
			words = append(words, count(x.n, x.noun))
		}
	}
	return cmp.Or(strings.Join(words, " and "), "nothing")
}

// size writes a number of bytes with a unit: 1.5 KiB.
func size(n int64) string { return transcript.Size(n) }

// at names an event: #7.
func at(seq int64) string { return transcript.At(seq) }

// someOf quotes the first most of the names, and counts the others.
func someOf(names []string, most int) string {
	var words []string
	for _, name := range names[:min(len(names), most)] {
		words = append(words, fmt.Sprintf("%q", name))
	}
	if n := len(names) - len(words); n > 0 {
		words = append(words, thousands(n)+" more")
	}
	return strings.Join(words, ", ")
}

// shellWord quotes a word for a shell if it needs quotes.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("-_./:", r) || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// clean makes a line of text safe for a terminal: control characters become visible
// escapes.
func clean(text string) string { return terminal.Clean(text) }

// titleColumns is the most columns of a title in a text.
const titleColumns = 60

// onOneLine joins the lines of a text.
func onOneLine(text string) string { return term.OneLine(text) }

// brief joins text to one line, cleans it and shortens it to n columns.
func brief(text string, n int) string { return term.Brief(text, n) }

// columns is the width of a line of text on a terminal.
func columns(text string) int { return terminal.Columns(text) }
