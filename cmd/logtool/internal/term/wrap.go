package term

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/terminal"
)

// Wrapper is a writer that breaks lines for a terminal: at spaces, and inside of a word that
// is wider than a line. The rest of a line is indented as the line. Call Flush at the end.
type Wrapper struct {
	w     io.Writer
	width int
	off   bool   // lines pass whole: JSON is never broken
	rest  []byte // the start of a line
}

// NewWrapper returns a wrapper for lines of width columns.
func NewWrapper(w io.Writer, width int) *Wrapper { return &Wrapper{w: w, width: width} }

// Write implements io.Writer.
func (x *Wrapper) Write(p []byte) (int, error) {
	if x.off {
		if err := x.Flush(); err != nil {
			return 0, err
		}
		return x.w.Write(p)
	}
	var out []byte
	text := append(x.rest, p...)
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		out, text = append(x.wrap(out, line), '\n'), rest
	}
	x.rest = bytes.Clone(text)
	if len(out) > 0 {
		if _, err := x.w.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes the line that has no end yet.
func (x *Wrapper) Flush() error {
	if len(x.rest) == 0 {
		return nil
	}
	_, err := x.w.Write(x.wrap(nil, x.rest))
	x.rest = nil
	return err
}

// wrap appends a line, broken.
func (x *Wrapper) wrap(out, line []byte) []byte {
	indent := line[:len(line)-len(bytes.TrimLeft(line, " "))]
	if len(indent) > x.width/2 && x.fits(line) < len(line) {
		line, indent = line[len(indent):], nil
	}
	for {
		n := x.fits(line)
		if n == len(line) {
			return append(out, line...)
		}
		rest := bytes.TrimLeft(line[n:], " ")
		out = append(out, bytes.TrimRight(line[:n], " ")...)
		if len(rest) == 0 || isColour(rest) {
			return append(out, rest...)
		}
		out = append(out, '\n')
		line = append(bytes.Clone(indent), rest...)
	}
}

// fits is how many bytes of a line fit: up to a space if there is one. The codes of colours
// have no width.
func (x *Wrapper) fits(line []byte) int {
	width, space, text := 0, 0, false
	for i := 0; i < len(line); {
		if n := colourCode(line[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRune(line[i:])
		wide := terminal.RuneColumns(r)
		if r == '\t' {
			wide = 8 - width%8
		}
		if width += wide; width > x.width {
			if r == ' ' || space == 0 {
				return max(i, 1)
			}
			return space
		}
		i += size
		if r != ' ' {
			text = true
		} else if text {
			space = i
		}
	}
	return len(line)
}

// colourCode is the length of the code of a colour at the start of text; 0 for none.
func colourCode(text []byte) int {
	if !bytes.HasPrefix(text, []byte("\x1b[")) {
		return 0
	}
	return bytes.IndexByte(text, 'm') + 1
}

// Visible is the width of a line of text. The codes of colours have no width.
func Visible(text string) (n int) {
	for len(text) > 0 {
		if skip := colourCode([]byte(text)); skip > 0 {
			text = text[skip:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		n += terminal.RuneColumns(r)
		text = text[size:]
	}
	return n
}

// isColour reports whether text is codes of colours only.
func isColour(text []byte) bool {
	for len(text) > 0 {
		n := colourCode(text)
		if n == 0 {
			return false
		}
		text = text[n:]
	}
	return true
}
