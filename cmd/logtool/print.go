package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
)

// printer prints the output of a command.
type printer struct {
	*term.Printer
	now func() time.Time
}

func (a *app) printer() *printer {
	o := term.Options{Terminal: a.onTerminal()}
	if o.Terminal {
		o.Width = a.columns(a.out)
	}
	o.Colour = o.Terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	return &printer{term.NewPrinter(a.display(), o), a.now}
}

// display is the output of a command. On the terminal of the progress, it ends the progress.
func (a *app) display() io.Writer {
	if a.progress != nil && term.IsTerminal(a.out) {
		return a.progress.Output(a.out)
	}
	return a.out
}

// note prints a line on the error output.
func (a *app) note(format string, args ...any) {
	a.progress.End()
	fmt.Fprintf(a.err, format+"\n", args...)
}

// page sends the output of a paged command to the pager, if the output is a terminal.
func (a *app) page(cmd *cobra.Command) (err error) {
	if !a.traitsOf(cmd).paged || a.json || !term.IsTerminal(a.out) {
		return nil
	}
	if a.pager, err = term.OpenPager(a.out, a.err, a.getenv); a.pager != nil {
		a.out = a.pager
	}
	return err
}

// closePager waits until the pager ends.
func (a *app) closePager(err error) error {
	if a.pager == nil {
		return err
	}
	return a.pager.Close(err)
}

// onTerminal reports whether the output is a terminal, or a pager on a terminal.
func (a *app) onTerminal() bool { return a.pager != nil || term.IsTerminal(a.out) }

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
		return p.Flush()
	}
	for i := range rows {
		if err := p.Value(rows[i]); err != nil {
			return err
		}
	}
	return p.Flush()
}

// columns is the width of the terminal of an output; 0 if it is unknown. COLUMNS goes
// before the size that the terminal reports.
func (a *app) columns(w io.Writer) int {
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if a.pager != nil && w == a.out {
		w = a.pager.Terminal()
	}
	return term.Width(w)
}

// when is a time in a listing: relative on a terminal, else absolute and in UTC.
func (p *printer) when(t time.Time) string {
	switch {
	case event.Dated(t).IsZero():
		return "-"
	case p.Terminal:
		return ago(p.now().Sub(t), t)
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clock is the time of an event: local time on a terminal, else UTC.
func (p *printer) clock(t time.Time) string {
	if event.Dated(t).IsZero() {
		return "-"
	}
	if p.Terminal {
		t = t.Local()
	}
	return t.Format("2006-01-02 15:04:05")
}
