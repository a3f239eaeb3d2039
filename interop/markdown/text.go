package markdown

import (
	"html"
	"strings"

	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop/internal/fence"
)

// Texts beyond these limits are folded.
const (
	foldLines = 12
	foldBytes = 2000
)

// output writes a text with an optional name as a code block, folded if it is long.
func (p *page) output(name, text string) {
	text = strings.Trim(transcript.Visible(text), "\n")
	switch {
	case text == "" && name == "":
	case len(text) > foldBytes || transcript.Lines(text) > foldLines:
		p.details(name, text)
	default:
		if name != "" {
			p.printf("\n%s\n", plain(name))
		}
		if text != "" {
			p.printf("\n%s\n", block(text, ""))
		}
	}
}

// details writes a text that the reader can unfold.
func (p *page) details(name, text string) {
	text = strings.Trim(transcript.Visible(text), "\n")
	summary := strings.TrimSpace(name + " · " + transcript.Count(int64(transcript.Lines(text)), "line") + " · " + transcript.Gist(text))
	summary = strings.Join(strings.Fields(strings.TrimPrefix(summary, "· ")), " ")
	p.printf("\n<details>\n<summary>%s</summary>\n\n%s\n\n</details>\n", html.EscapeString(summary), block(text, ""))
}

// block returns a code block. Its marker is longer than any marker in the text.
func block(text, info string) string {
	marker := fence.Around(text)
	return marker + info + "\n" + text + "\n" + marker
}

// code returns text on one line as a code span. Its marker is longer than any marker
// in the text.
func code(text string) string {
	text = strings.ReplaceAll(transcript.Visible(text), "\n", " ")
	marker := "`"
	if strings.Contains(text, "`") {
		marker = fence.Around(text)
	}
	return marker + " " + text + " " + marker
}

// plain returns text on one line, with all Markdown escaped.
func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(transcript.Visible(text)), " ") {
		if strings.ContainsRune("\\`*_[]<>#|~&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// prose returns a message text as Markdown that stays inside its place.
func prose(text string) string {
	var all []string
	for _, s := range fence.Split(transcript.Visible(text)) {
		if s.Code {
			all = append(all, block(s.Text, language(s.Info)))
			continue
		}
		all = append(all, strings.Trim(contain(s.Text), "\n"))
	}
	return strings.Join(all, "\n\n")
}

// language returns the language of a fence; empty if it is not a plain word.
func language(info string) string {
	word, _, _ := strings.Cut(info, " ")
	if strings.ContainsFunc(word, func(r rune) bool {
		return r != '+' && r != '-' && r != '#' && r != '.' && (r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a')
	}) {
		return ""
	}
	return word
}

// contain escapes tags and images, and lowers headings below the page's headings.
func contain(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = lowerHeading(escapeTags(line))
	}
	return strings.Join(lines, "\n")
}

// lowerHeading moves a heading three levels down, to level 6 at most. It escapes a
// line that would underline a heading or draw a rule.
func lowerHeading(line string) string {
	rest := strings.TrimLeft(line, " >")
	body := strings.TrimLeft(rest, "#")
	switch depth := len(rest) - len(body); {
	case depth > 0 && depth <= 6 && (body == "" || body[0] == ' ' || body[0] == '\t'):
		return line[:len(line)-len(rest)] + strings.Repeat("#", min(6, depth+3)) + body
	case rest != "" && (strings.Trim(rest, "= ") == "" || strings.Trim(rest, "- ") == ""):
		return line[:len(line)-len(rest)] + `\` + rest
	}
	return line
}

// escapeTags escapes the tags and images of a line, except in code spans.
func escapeTags(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 1
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			n = 2
		case c == '`':
			n = codeSpan(s[i:])
		case c == '<' && i+1 < len(s) && opensTag(s[i+1]):
			b.WriteString("&lt;")
			i++
			continue
		case c == '!' && strings.HasPrefix(s[i:], "!["):
			b.WriteString(`!\[`)
			i += 2
			continue
		}
		b.WriteString(s[i : i+n])
		i += n
	}
	return b.String()
}

func opensTag(c byte) bool {
	return c == '/' || c == '!' || c == '?' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// codeSpan returns the length of the code span at the start of s. Without an end on
// the line, or with a table cell before the end, it returns the length of the marker.
func codeSpan(s string) int {
	run := len(s) - len(strings.TrimLeft(s, "`"))
	for i := run; i < len(s); {
		next := strings.IndexByte(s[i:], '`')
		if next < 0 {
			break
		}
		i += next
		end := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if i += end; end == run && !strings.Contains(s[:i], "|") {
			return i
		}
	}
	return run
}
