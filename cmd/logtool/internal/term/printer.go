package term

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/terminal"
)

// Printer prints the output of a command. It buffers, and Flush returns the first error.
type Printer struct {
	Options
	w     *bufio.Writer
	guard *terminal.Guard // between w and a terminal; nil for other output
	lines *Wrapper        // between guard and the terminal; nil if the width is unknown
	err   error           // of the first value that is not JSON
}

// Options say what the output of a Printer is.
type Options struct {
	Terminal bool // the output is a terminal, or a pager on a terminal
	Colour   bool
	Width    int // of the terminal in columns; 0 is no limit
}

// NewPrinter returns a printer to out.
func NewPrinter(out io.Writer, o Options) *Printer {
	p := &Printer{Options: o}
	if p.Width > 0 {
		p.lines = NewWrapper(out, p.Width)
		out = p.lines
	}
	if p.Terminal {
		p.guard = terminal.NewGuard(out, p.Colour)
		out = p.guard
	}
	p.w = bufio.NewWriterSize(out, 64<<10)
	return p
}

// Write implements io.Writer.
func (p *Printer) Write(text []byte) (int, error) { return p.w.Write(text) }

// Flush writes the buffer out and returns the first error of the printer.
func (p *Printer) Flush() error {
	err := p.w.Flush()
	if p.guard != nil && err == nil {
		err = p.guard.Flush()
	}
	if p.lines != nil && err == nil {
		err = p.lines.Flush()
	}
	return cmp.Or(p.err, err)
}

// Printf prints text.
func (p *Printer) Printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// Value prints v as JSON on one line.
func (p *Printer) Value(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		p.err = fmt.Errorf("print JSON: %w", err)
		return p.err
	}
	return p.Raw(text)
}

// Raw prints JSON and a newline. On a terminal, control characters in its strings
// are escaped.
func (p *Printer) Raw(text []byte) error {
	if p.Terminal && bytes.IndexFunc(text, escapable) >= 0 {
		text = escaped(text)
	}
	if p.lines != nil {
		p.w.Flush()
		p.lines.off = true
		defer func() { p.w.Flush(); p.lines.off = false }()
	}
	p.w.Write(text)
	return p.w.WriteByte('\n')
}

// Stream prints the JSON that write writes, and a newline. Only a terminal waits for the
// end of it.
func (p *Printer) Stream(write func(w io.Writer) error) error {
	if p.Terminal {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			return err
		}
		return p.Raw(text.Bytes())
	}
	if err := write(p.w); err != nil {
		return err
	}
	return p.w.WriteByte('\n')
}

func escaped(text []byte) []byte {
	safe := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if escapable(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = utf8.AppendRune(safe, r)
		}
	}
	return safe
}

// escapable reports whether JSON may contain a control character unescaped.
func escapable(r rune) bool { return r >= 0x7f && terminal.Control(r) }

// Style is the code of an ANSI colour or weight.
type Style string

// The styles.
const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Cyan   Style = "36"
)

// Paint gives a text a style, if the output has colours.
func (p *Printer) Paint(s Style, text string) string {
	if !p.Colour || text == "" || s == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
