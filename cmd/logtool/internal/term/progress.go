package term

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress is a line on the terminal about a command that takes over a second. It is
// drawn ten times a second, and ends with the first output on the terminal. All methods
// may be called concurrently. A nil Progress shows nothing.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	width int // of the terminal in columns; 0 is no limit
	verb  string

	mu    sync.Mutex
	began time.Time // zero before Run
	whole bool      // of ReadsAll
	meter func(whole bool) string
	text  func() string
	shown bool
	ended bool
}

// NewProgress returns a progress on the terminal w. verb names the work of the command. Width
// 0 is no limit.
func NewProgress(w io.Writer, now func() time.Time, width int, verb string) *Progress {
	return &Progress{w: w, now: now, width: width, verb: verb}
}

// Run draws the line while f runs. Within another Run it only runs f.
func (p *Progress) Run(f func() error) error {
	if p == nil || !p.Begin() {
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
				p.Draw()
			}
		}
	})
	defer func() {
		close(done)
		drawer.Wait()
		p.End()
	}()
	return f()
}

// Begin starts the time of the line; false if it has begun before. Run calls it.
func (p *Progress) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.IsZero() {
		return false
	}
	p.began = p.now()
	return true
}

// ReadsAll says that the command reads all sessions: the line has the size of the store.
func (p *Progress) ReadsAll() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.whole = true
	}
}

// Meter sets the text of the line for a command that says nothing, and reports whether there
// was no such text yet. The text gets the value of ReadsAll; empty text shows the time.
func (p *Progress) Meter(text func(whole bool) string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meter != nil {
		return false
	}
	p.meter = text
	return true
}

// Say sets the text of the line after the verb; nil returns to the text of Meter. The function
// is called while the command works.
func (p *Progress) Say(text func() string) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.text = text
	}
}

// End removes the line for good, before other output.
func (p *Progress) End() {
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

// Draw replaces the line, once the command has taken a second.
func (p *Progress) Draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := p.now().Sub(p.began); !p.ended && took > time.Second {
		line := p.verb + ": " + p.line(took)
		if p.width > 0 {
			line = firstColumns(line, p.width-1)
		}
		fmt.Fprint(p.w, "\r\x1b[K"+line)
		p.shown = true
	}
}

// line is the text of Say, else the text of Meter, else the time.
func (p *Progress) line(took time.Duration) string {
	text := ""
	switch {
	case p.text != nil:
		return p.text()
	case p.meter != nil:
		text = p.meter(p.whole)
	}
	if text == "" {
		text = took.Truncate(time.Second).String()
	}
	return text
}

// Output returns a writer to w that ends the progress before the first output.
func (p *Progress) Output(w io.Writer) io.Writer { return endsProgress{w, p} }

type endsProgress struct {
	io.Writer
	progress *Progress
}

func (w endsProgress) Write(text []byte) (int, error) {
	w.progress.End()
	return w.Writer.Write(text)
}
