// Package terminal makes text safe for a terminal: characters that would act on it, or
// disguise other text, become visible escapes.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Control reports whether a character acts on the terminal: control characters (C0, DEL
// and C1, except tabs) and the characters that change the direction of text.
func Control(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t'
	case r < 0x7f:
		return false
	case r <= 0x9f, r == 0x061c, r == 0x200e, r == 0x200f, 0x2028 <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return true
	}
	return false
}

// Clean escapes the control characters and the invalid bytes of a line: \x1b, \u202e.
func Clean(text string) string {
	if strings.IndexFunc(text, Control) < 0 && utf8.ValidString(text) {
		return text
	}
	var safe []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			safe = fmt.Appendf(safe, `\x%02x`, text[0])
		case Control(r) && r <= 0xff:
			safe = fmt.Appendf(safe, `\x%02x`, r)
		default:
			safe = escape(safe, r)
		}
		text = text[size:]
	}
	return string(safe)
}

// escape appends a character, or its escape. In JSON the escape has the same meaning.
func escape(dst []byte, r rune) []byte {
	if Control(r) {
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return utf8.AppendRune(dst, r)
}

// Guard is a writer that makes all text safe before it reaches a terminal. Line breaks
// pass. Call Flush at the end.
type Guard struct {
	w       io.Writer
	colours bool
	rest    []byte // the start of an incomplete character or colour
}

// NewGuard makes a guard. If colours is true, the codes of colours and weights pass.
func NewGuard(w io.Writer, colours bool) *Guard { return &Guard{w: w, colours: colours} }

// Write implements io.Writer.
func (g *Guard) Write(p []byte) (int, error) {
	if err := g.write(append(g.rest, p...), false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes an incomplete character, escaped.
func (g *Guard) Flush() error { return g.write(g.rest, true) }

func (g *Guard) write(text []byte, last bool) error {
	safe := make([]byte, 0, len(text)+64)
	g.rest = nil
	for len(text) > 0 {
		n, unfinished := g.colour(text)
		if !last && (unfinished || !utf8.FullRune(text)) {
			g.rest = append(g.rest, text...)
			break
		}
		if n > 0 {
			safe, text = append(safe, text[:n]...), text[n:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n':
			safe = append(safe, '\n')
		case r == utf8.RuneError && size == 1:
			safe = fmt.Appendf(safe, `\x%02x`, text[0])
		default:
			safe = escape(safe, r)
		}
		text = text[size:]
	}
	_, err := g.w.Write(safe)
	return err
}

// longestColour bounds the code of a colour.
const longestColour = 16

// colour is the length of the colour code at the start of text, 0 if there is none.
// unfinished means that the rest of text may be the start of a code.
func (g *Guard) colour(text []byte) (n int, unfinished bool) {
	const begin = "\x1b["
	if !g.colours || text[0] != begin[0] {
		return 0, false
	}
	if len(text) < len(begin) {
		return 0, true
	}
	if text[1] != begin[1] {
		return 0, false
	}
	for i := len(begin); i < len(text) && i < longestColour; i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1, false
		case c != ';' && (c < '0' || c > '9'):
			return 0, false
		}
	}
	return 0, len(text) < longestColour
}
