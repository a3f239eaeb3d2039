package htmlpage

import (
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// Text is a text on a page. A long one is shortened.
type Text struct {
	HTML  template.HTML
	Gist  string // its beginning, on one line
	Lines int
	// Left is the number of lines that the page leaves out, and More the address of all.
	Left int
	More string
}

// Longer texts are shortened.
const (
	mostLines = 40
	mostBytes = 6 << 10
	// of messages
	mostProse = 32 << 10
)

// text shows a text as it is, in the colours of a language.
func (v *View) text(text, language, more string) Text {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	t := Text{Gist: transcript.Visible(transcript.Gist(text)), Lines: transcript.Lines(text)}
	if short := v.shorten(text, mostLines, mostBytes, more); len(short) < len(text) {
		t.Left, t.More, text = max(1, t.Lines-transcript.Lines(short)), more, short
	}
	t.HTML = v.code(text, language)
	return t
}

// Text shows all of a text in the colours of a language.
func (v *View) Text(text, language string) Text { return v.text(text, language, "") }

// prose shows the text of a message, which is Markdown.
func (v *View) prose(text, more string) Text {
	t := Text{Gist: transcript.Visible(transcript.Gist(text)), Lines: transcript.Lines(text)}
	if short := v.shorten(text, mostProse, mostProse, more); len(short) < len(text) {
		t.Left, t.More, text = max(1, t.Lines-transcript.Lines(short)), more, short
	}
	t.HTML = v.markdown(text)
	return t
}

// shorten returns the beginning of a text that is long, if the rest can be read elsewhere.
func (v *View) shorten(text string, lines, bytes int, more string) string {
	if v.Whole || more == "" || len(text) <= bytes && transcript.Lines(text) <= lines+lines/4 {
		return text
	}
	end := min(bytes, len(text))
	for i, n := 0, 0; i < end; i++ {
		if text[i] == '\n' {
			if n++; n == lines {
				end = i
			}
		}
	}
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Spend writes a cost and its estimate in cents, for people; empty if nothing was spent.
func Spend(s projection.Spend) string {
	cost := ""
	if s.Cost != 0 {
		cost = transcript.Rounded(s.Cost)
	}
	return transcript.Join(cost, transcript.Estimate(s))
}

// Compact writes 16553628 as 16.6M.
func Compact(n int64) string {
	switch {
	case n >= 10_000_000:
		return strconv.FormatInt((n+500_000)/1_000_000, 10) + "M"
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1_000_000, 'f', 1, 64) + "M"
	case n >= 10_000:
		return strconv.FormatInt((n+500)/1000, 10) + "k"
	}
	return transcript.Thousands(n)
}
