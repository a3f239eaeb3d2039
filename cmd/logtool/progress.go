package main

import (
	"fmt"
	"io"
	"time"
)

// progress is a line on the terminal that says how far a long command is. The
// zero value says nothing.
type progress struct {
	w     io.Writer
	now   func() time.Time
	next  time.Time
	shown bool
}

// progress is for a person who waits: it stands on the terminal of the error
// output, if that is one.
func (a *app) progress() *progress {
	if !isTerminal(a.err) || a.getenv("TERM") == "dumb" {
		return &progress{}
	}
	return &progress{w: a.err, now: a.now}
}

// show replaces the line, ten times a second at most.
func (p *progress) show(format string, args ...any) {
	if !p.due() {
		return
	}
	p.next, p.shown = p.now().Add(100*time.Millisecond), true
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// due reports whether show would say something.
func (p *progress) due() bool { return p.w != nil && !p.now().Before(p.next) }

// clear takes the line away, before anything else is printed.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
