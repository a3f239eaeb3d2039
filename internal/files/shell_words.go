package files

import (
	"strings"
)

// simple is a command of a script, with its redirections.
type simple struct {
	words   []string
	outputs []output
	input   string // of a heredoc
	heredoc bool
	literal bool // the shell substitutes nothing in input
	raw     bool // a word has a substitution
}

// output is a file after > or >>.
type output struct {
	name string
	adds bool // >>
}

// parseShell splits a script into its commands. It knows quotes, escapes, comments,
// redirections and heredocs. Substitutions stay in the words.
func parseShell(script string) (all []simple) {
	p := &shellParser{rest: script}
	for p.rest != "" {
		p.next()
	}
	p.end()
	return p.all
}

// shellParser splits a script.
type shellParser struct {
	rest  string
	all   []simple
	now   simple
	docs  []pendingDoc // heredocs whose text begins after this line
	about string       // the redirection that the next word belongs to
}

// pendingDoc is a heredoc: the index of its command, and its end.
type pendingDoc struct {
	command int
	end     string
	tabs    bool // <<-
	literal bool
}

// end ends a command.
func (p *shellParser) end() {
	if len(p.now.words) > 0 || len(p.now.outputs) > 0 {
		p.all = append(p.all, p.now)
	}
	p.now, p.about = simple{}, ""
}

// next parses a word, an operator or a space.
func (p *shellParser) next() {
	switch c := p.rest[0]; {
	case c == '\n':
		p.rest = p.rest[1:]
		p.end()
		p.readDocs()
	case c == ' ' || c == '\t' || c == '\r':
		p.rest = p.rest[1:]
	case c == '#':
		if i := strings.IndexByte(p.rest, '\n'); i >= 0 {
			p.rest = p.rest[i:]
		} else {
			p.rest = ""
		}
	case strings.IndexByte(";&|()", c) >= 0:
		p.operator()
	case c == '<' || c == '>':
		p.redirect()
	default:
		p.word()
	}
}

// operator ends a command. &> and >& write to a file.
func (p *shellParser) operator() {
	if strings.HasPrefix(p.rest, "&>") {
		p.rest = p.rest[1:]
		return
	}
	p.rest = p.rest[1:]
	p.end()
}

func (p *shellParser) redirect() {
	for _, mark := range []string{"<<<", "<<-", "<<", ">>", ">|", ">&", "<&", ">", "<"} {
		if rest, ok := strings.CutPrefix(p.rest, mark); ok {
			p.rest, p.about = rest, mark
			return
		}
	}
}

// word parses a word, and gives it to the command or to a redirection.
func (p *shellParser) word() {
	text, quoted, raw := p.text()
	about := p.about
	p.about = ""
	switch about {
	case "":
		if isDigits(text) && p.rest != "" && (p.rest[0] == '>' || p.rest[0] == '<') {
			p.descriptor(text)
			return
		}
		p.now.words, p.now.raw = append(p.now.words, text), p.now.raw || raw
	case ">", ">|":
		p.now.outputs = append(p.now.outputs, output{name: text})
	case ">>":
		p.now.outputs = append(p.now.outputs, output{name: text, adds: true})
	case "<<", "<<-":
		p.docs = append(p.docs, pendingDoc{len(p.all), text, about == "<<-", quoted})
	case "<<<":
		p.now.input = text
	}
}

// descriptor skips the number of a redirection. Errors (2>) are no output of the command.
func (p *shellParser) descriptor(number string) {
	p.redirect()
	if number == "1" {
		return
	}
	p.rest = strings.TrimLeft(p.rest, " ")
	p.text()
	p.about = ""
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// text parses a word. quoted says that it has quotes, and raw that it has a substitution.
func (p *shellParser) text() (word string, quoted, raw bool) {
	var b strings.Builder
	for p.rest != "" {
		c := p.rest[0]
		switch {
		case c == '\'':
			quoted = true
			text, rest, _ := strings.Cut(p.rest[1:], "'")
			b.WriteString(text)
			p.rest = rest
		case c == '"':
			quoted = true
			raw = p.doubleQuoted(&b) || raw
		case c == '\\' && len(p.rest) > 1:
			if p.rest[1] != '\n' {
				b.WriteByte(p.rest[1])
			}
			p.rest = p.rest[2:]
		case c == '$' || c == '`':
			raw = true
			p.substitution(&b)
		case strings.IndexByte(" \t\r\n;&|()<>", c) >= 0:
			return b.String(), quoted, raw
		default:
			b.WriteByte(c)
			p.rest = p.rest[1:]
		}
	}
	return b.String(), quoted, raw
}

// doubleQuoted parses a text in double quotes; raw says that it has a substitution.
func (p *shellParser) doubleQuoted(b *strings.Builder) (raw bool) {
	for p.rest = p.rest[1:]; p.rest != ""; {
		switch c := p.rest[0]; {
		case c == '"':
			p.rest = p.rest[1:]
			return raw
		case c == '\\' && len(p.rest) > 1 && strings.IndexByte("\"\\$`\n", p.rest[1]) >= 0:
			if p.rest[1] != '\n' {
				b.WriteByte(p.rest[1])
			}
			p.rest = p.rest[2:]
		case c == '$' || c == '`':
			raw = true
			p.substitution(b)
		default:
			b.WriteByte(c)
			p.rest = p.rest[1:]
		}
	}
	return raw
}

// substitution copies $NAME, $(…) or `…` as it is.
func (p *shellParser) substitution(b *strings.Builder) {
	n := 1
	switch {
	case p.rest[0] == '`':
		if i := strings.IndexByte(p.rest[1:], '`'); i >= 0 {
			n = i + 2
		}
	case strings.HasPrefix(p.rest, "$("):
		depth := 0
		for n = 1; n < len(p.rest); n++ {
			if p.rest[n] == '(' {
				depth++
			} else if p.rest[n] == ')' {
				if depth--; depth == 0 {
					n++
					break
				}
			}
		}
	}
	b.WriteString(p.rest[:n])
	p.rest = p.rest[n:]
}

// readDocs reads the heredocs that begin on this line.
func (p *shellParser) readDocs() {
	for _, doc := range p.docs {
		var text strings.Builder
		for p.rest != "" {
			line, rest, ended := strings.Cut(p.rest, "\n")
			p.rest = rest
			if doc.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == doc.end {
				break
			}
			text.WriteString(line)
			if ended {
				text.WriteByte('\n')
			}
		}
		if doc.command < len(p.all) {
			c := &p.all[doc.command]
			c.input, c.heredoc = text.String(), true
			c.literal = doc.literal || !strings.ContainsAny(c.input, "$`\\")
		}
	}
	p.docs = nil
}

// quoted is a word of a command in quotes, if it needs them.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./=:,@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
