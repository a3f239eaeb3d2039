package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/interop"
)

// printer writes what a command prints. Errors of writing are kept until flush.
type printer struct {
	w      *bufio.Writer
	colour bool
	// terminal: a person is looking.
	terminal bool
	now      func() time.Time
}

func (a *app) printer() *printer {
	terminal := a.pager != nil || isTerminal(a.out)
	return &printer{
		w:        bufio.NewWriterSize(a.out, 64<<10),
		terminal: terminal,
		colour:   terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb",
		now:      a.now,
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// flush writes out what is buffered and returns the first error of any write.
func (p *printer) flush() error { return p.w.Flush() }

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// value prints v as JSON on one line.
func (p *printer) value(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return p.raw(text)
}

// raw prints JSON and a newline. On a terminal, the characters of its strings that
// would act on that are escaped.
func (p *printer) raw(text []byte) error {
	if p.terminal && bytes.IndexFunc(text, escapable) >= 0 {
		text = escaped(text)
	}
	p.w.Write(text)
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

// escapable reports whether a control character can stand in JSON as it is.
func escapable(r rune) bool { return r >= 0x7f && control(r) }

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
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// table prints rows under a heading, columns as wide as they need to be; a cell
// that is very long pushes the rest of its row aside. Numbers (columns in
// right) stand to the right; the last column is ragged.
func (p *printer) table(heading []string, rows [][]string, right ...int) {
	const most = 80
	width := make([]int, len(heading))
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			if n := columns(cell); n <= most {
				width[i] = max(width[i], n)
			}
		}
	}
	p.w.WriteString(p.paint(dim, tableLine(heading, width, right)) + "\n")
	for _, row := range rows {
		p.w.WriteString(tableLine(row, width, right) + "\n")
	}
}

func tableLine(row []string, width, right []int) string {
	var line strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", max(0, width[i]-columns(cell)))
		if contains(right, i) {
			cell = pad + cell
		} else if i < len(row)-1 {
			cell += pad
		}
		if i > 0 {
			line.WriteString("  ")
		}
		line.WriteString(cell)
	}
	return strings.TrimRight(line.String(), " ")
}

func contains(list []int, n int) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// when is a time in a listing: relative for a person, else absolute and in UTC.
func (p *printer) when(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case p.terminal:
		return ago(p.now().Sub(t), t)
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

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
func thousands(n int64) string { return interop.Thousands(n) }

// size writes a number of bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, names := float64(n)/unit, "KMGTP"
	for value >= unit && len(names) > 1 {
		value, names = value/unit, names[1:]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + names[:1] + "iB"
}

// count writes a number with its noun: 1 session, 2 sessions.
func count(n int64, noun string) string { return interop.Count(n, noun) }

// clean makes one line of text safe to show on a terminal: control characters
// become visible escapes.
func clean(text string) string {
	if strings.IndexFunc(text, control) < 0 {
		return text
	}
	var safe strings.Builder
	for _, r := range text {
		switch {
		case control(r) && r > 0xff:
			fmt.Fprintf(&safe, `\u%04x`, r)
		case control(r):
			fmt.Fprintf(&safe, `\x%02x`, r)
		default:
			safe.WriteRune(r)
		}
	}
	return safe.String()
}

// control reports whether a character acts on the terminal: also one that turns the
// direction of text around, and so shows another text than there is.
func control(r rune) bool {
	return r < 0x20 && r != '\t' || 0x7f <= r && r <= 0x9f || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// brief shortens one line of text to at most n columns.
func brief(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if columns(text) <= n {
		return clean(text)
	}
	taken := 0
	for i, r := range text {
		if taken += runeColumns(r); taken >= n {
			text = text[:i]
			break
		}
	}
	return clean(strings.TrimRight(text, " ")) + "…"
}
