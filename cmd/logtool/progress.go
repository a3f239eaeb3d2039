package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// progress is a line on the terminal about a command that takes over a second. It is
// drawn ten times a second, and ends with the first output on the terminal. All methods
// may be called concurrently. A nil progress shows nothing.
type progress struct {
	w      io.Writer
	now    func() time.Time
	width  int // of the terminal in columns; 0 is no limit
	verb   string
	shared bool // the output of the command goes to the same terminal

	events, bytes atomic.Int64 // read from the store
	listed        atomic.Int64 // bytes of all sessions of the store; 0 until they are listed

	mu     sync.Mutex
	began  time.Time // zero before run
	meters bool      // a store is metered
	whole  bool      // the command reads all sessions
	text   func() string
	shown  bool
	ended  bool
}

// startProgress makes the progress of a command, if the error output is a terminal. An empty
// verb makes none.
func (a *app) startProgress(verb string) {
	if verb == "" || !isTerminal(a.err) || a.getenv("TERM") == "dumb" {
		return
	}
	a.progress = &progress{w: a.err, now: a.now, width: a.columns(a.err), verb: verb, shared: isTerminal(a.out)}
}

// run draws the line while f runs. Within another run it only runs f.
func (p *progress) run(f func() error) error {
	if p == nil || !p.begin() {
		return f()
	}
	done := make(chan struct{})
	var drawer sync.WaitGroup
	drawer.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.draw()
			}
		}
	})
	defer func() {
		close(done)
		drawer.Wait()
		p.end()
	}()
	return f()
}

func (p *progress) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.IsZero() {
		return false
	}
	p.began = p.now()
	return true
}

// readsAll says that the command reads all sessions: the line has the size of the store.
func (p *progress) readsAll() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.whole = true
	}
}

// say sets the text of the line after the verb. The function is called while the command
// works.
func (p *progress) say(text func() string) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.text = text
	}
}

// steps makes the line count sessions. Call step after each of them.
func (p *progress) steps(all int) (step func()) {
	var done atomic.Int64
	p.say(func() string { return thousands(done.Load()) + " of " + count(all, "session") })
	return func() { done.Add(1) }
}

// end removes the line for good, before other output.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// draw replaces the line.
func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := p.now().Sub(p.began); !p.ended && took > time.Second {
		line := p.line(took)
		if p.width > 0 {
			line = firstColumns(line, p.width-1)
		}
		fmt.Fprint(p.w, "\r\x1b[K"+line)
		p.shown = true
	}
}

// line is the verb with the text of say, else with what was read, else with the time.
func (p *progress) line(took time.Duration) string {
	text := took.Truncate(time.Second).String()
	if p.text != nil {
		text = p.text()
	} else if events, bytes, all := p.events.Load(), p.bytes.Load(), p.listed.Load(); events > 0 {
		text = count(events, "event") + " read, " + size(bytes)
		if p.whole && bytes <= all {
			text += " of " + size(all)
		}
	}
	return p.verb + ": " + text
}

// endsProgress is a writer that ends the progress before the first output.
type endsProgress struct {
	io.Writer
	progress *progress
}

func (w endsProgress) Write(text []byte) (int, error) {
	w.progress.end()
	return w.Writer.Write(text)
}

// display is the output of a command. On the terminal of the progress, it ends the progress.
func (a *app) display() io.Writer {
	if a.progress != nil && a.progress.shared {
		return endsProgress{a.out, a.progress}
	}
	return a.out
}

// note prints a line on the error output.
func (a *app) note(format string, args ...any) {
	a.progress.end()
	fmt.Fprintf(a.err, format+"\n", args...)
}
