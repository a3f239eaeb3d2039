// Package fence finds blocks of code in Markdown, and makes fences that no line of
// the code can close.
package fence

import "strings"

// Segment is a block of code without its fences, or the text between two blocks.
type Segment struct {
	Code bool
	// Info is the rest of the opening fence, for example the language.
	Info string
	Text string
}

// Split splits a text into segments, in order. A block without a closing fence ends
// with the text.
func Split(text string) (all []Segment) {
	var s Segment
	var open mark
	var lines []string
	end := func() {
		if s.Text = strings.Join(lines, "\n"); s.Code || strings.TrimSpace(s.Text) != "" {
			all = append(all, s)
		}
		s, lines = Segment{}, nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		m, ok := markOf(line)
		switch {
		case !s.Code && ok && m.opens():
			end()
			s.Code, s.Info, open = true, m.info, m
		case s.Code && ok && m.closes(&open):
			end()
		default:
			lines = append(lines, line)
		}
	}
	end()
	return all
}

// mark is a line that begins with a run of backticks or tildes.
type mark struct {
	sign   byte
	length int
	info   string
}

func markOf(line string) (m mark, ok bool) {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 || len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return m, false
	}
	m.sign = rest[0]
	for m.length < len(rest) && rest[m.length] == m.sign {
		m.length++
	}
	m.info = strings.TrimSpace(rest[m.length:])
	return m, m.length >= 3
}

func (m *mark) opens() bool { return m.sign == '~' || !strings.Contains(m.info, "`") }

func (m *mark) closes(open *mark) bool {
	return m.sign == open.sign && m.length >= open.length && m.info == ""
}

// Around is a fence for a text: three backticks, or one more than the longest run
// of backticks in the text.
func Around(text string) string {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}
