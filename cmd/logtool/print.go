package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/terminal"
)

// printer prints the output of a command. It buffers, and flush returns the first
// error.
type printer struct {
	w        *bufio.Writer
	guard    *terminal.Guard // between w and a terminal; nil for other output
	lines    *wrapper        // between guard and the terminal; nil if the width is unknown
	err      error           // of the first value that is not JSON
	colour   bool
	terminal bool // the output is a terminal, or a pager on a terminal
	width    int  // of the terminal in columns; 0 is no limit
	now      func() time.Time
}

func (a *app) printer() *printer {
	p := &printer{terminal: a.onTerminal(), now: a.now}
	if p.terminal {
		p.width = a.columns(a.out)
	}
	p.colour = p.terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	out := a.display()
	if p.width > 0 {
		p.lines = &wrapper{w: out, width: p.width}
		out = p.lines
	}
	if p.terminal {
		p.guard = terminal.NewGuard(out, p.colour)
		out = p.guard
	}
	p.w = bufio.NewWriterSize(out, 64<<10)
	return p
}

// onTerminal reports whether the output is a terminal, or a pager on a terminal.
func (a *app) onTerminal() bool { return a.pager != nil || isTerminal(a.out) }

// answer prints the one result of a command: v with --json, else as text prints it.
func (a *app) answer(v any, text func(p *printer)) error {
	return printRows(a, []any{v}, text)
}

// printRows prints the results of a command: a value per line with --json, else as
// text prints them.
func printRows[R any](a *app, rows []R, text func(p *printer)) error {
	p := a.printer()
	if !a.json {
		text(p)
		return p.flush()
	}
	for i := range rows {
		if err := p.value(rows[i]); err != nil {
			return err
		}
	}
	return p.flush()
}

// columns is the width of the terminal of an output; 0 if it is unknown. COLUMNS goes
// before the size that the terminal reports.
func (a *app) columns(w io.Writer) int {
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if a.pager != nil && w == a.out {
		w = a.pager.terminal
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return consoleWidth(int(f.Fd()))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// flush writes the buffer out and returns the first error of the printer.
func (p *printer) flush() error {
	err := p.w.Flush()
	if p.guard != nil && err == nil {
		err = p.guard.Flush()
	}
	if p.lines != nil && err == nil {
		err = p.lines.flush()
	}
	return cmp.Or(p.err, err)
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// value prints v as JSON on one line.
func (p *printer) value(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		p.err = fmt.Errorf("print JSON: %w", err)
		return p.err
	}
	return p.raw(text)
}

// raw prints JSON and a newline. On a terminal, control characters in its strings
// are escaped.
func (p *printer) raw(text []byte) error {
	if p.terminal && bytes.IndexFunc(text, escapable) >= 0 {
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

// stream prints the JSON that write writes, and a newline. Only a terminal waits for the
// end of it.
func (p *printer) stream(write func(w io.Writer) error) error {
	if p.terminal {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			return err
		}
		return p.raw(text.Bytes())
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

// style is the code of an ANSI colour or weight.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "34"
	cyan   style = "36"
)

func (p *printer) paint(s style, text string) string {
	if !p.colour || text == "" || s == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// when is a time in a listing: relative on a terminal, else absolute and in UTC.
func (p *printer) when(t time.Time) string {
	switch {
	case event.Dated(t).IsZero():
		return "-"
	case p.terminal:
		return ago(p.now().Sub(t), t)
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clock is the time of an event: local time on a terminal, else UTC.
func (p *printer) clock(t time.Time) string {
	if event.Dated(t).IsZero() {
		return "-"
	}
	if p.terminal {
		t = t.Local()
	}
	return t.Format("2006-01-02 15:04:05")
}
