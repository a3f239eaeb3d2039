package markdown

import (
	"html"
	"strings"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/fence"
	"github.com/convlog/convlog/interop/transcript"
)

// What is longer than this is folded.
const (
	foldLines = 12
	foldBytes = 2000
)

// folded writes output: in a block of code, which is folded if it is long.
func (p *page) folded(name, text string) {
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

// details writes a text that a reader unfolds.
func (p *page) details(name, text string) {
	text = strings.Trim(transcript.Visible(text), "\n")
	summary := strings.TrimSpace(name + " · " + interop.Count(int64(transcript.Lines(text)), "line") + " · " + transcript.Gist(text))
	summary = strings.Join(strings.Fields(strings.TrimPrefix(summary, "· ")), " ")
	p.printf("\n<details>\n<summary>%s</summary>\n\n%s\n\n</details>\n", html.EscapeString(summary), block(text, ""))
}

// block is a block of code, which nothing in the text ends.
func block(text, info string) string {
	around := fence.Around(text)
	return around + info + "\n" + text + "\n" + around
}

// code is text on one line as code, which nothing in it ends.
func code(text string) string {
	text = strings.ReplaceAll(transcript.Visible(text), "\n", " ")
	around := "`"
	if strings.Contains(text, "`") {
		around = fence.Around(text)
	}
	return around + " " + text + " " + around
}

// plain is text on one line that means nothing but itself.
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

// prose is what somebody said, as Markdown that stays where it stands.
func prose(text string) string {
	var all []string
	for _, s := range fence.Split(transcript.Visible(text)) {
		if s.Code {
			all = append(all, block(s.Text, language(s.Info)))
			continue
		}
		all = append(all, strings.Trim(tame(s.Text), "\n"))
	}
	return strings.Join(all, "\n\n")
}

// language is the word that a fence says, if it is one.
func language(info string) string {
	word, _, _ := strings.Cut(info, " ")
	if strings.ContainsFunc(word, func(r rune) bool {
		return r != '+' && r != '-' && r != '#' && r != '.' && (r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a')
	}) {
		return ""
	}
	return word
}

// tame makes text of what would reach beyond it: tags, images, and headings as
// high as ours.
func tame(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = lower(inline(line))
	}
	return strings.Join(lines, "\n")
}

// lower makes a heading one of the lowest, and text of a line that would make a
// heading of the line before, or a rule.
func lower(line string) string {
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

// inline escapes the tags and images of a line, but for those in code.
func inline(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 1
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			n = 2
		case c == '`':
			n = span(s[i:])
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

// span is how long the code is that s begins with; where nothing on the line ends
// it, or a table might, the run of backticks.
func span(s string) int {
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
