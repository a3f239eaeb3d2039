package html

import (
	"bufio"
	"context"
	"embed"
	"html/template"
	"sync"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop"
)

//go:embed page.html
var templateFiles embed.FS

// templates are the templates, parsed at the first use.
var templates = sync.OnceValues(func() (*template.Template, error) {
	return htmlpage.Templates(time.UTC, templateFiles, "page.html")
})

// page writes a page. It keeps the first error.
type page struct {
	w    *bufio.Writer
	all  *template.Template
	err  error
	view htmlpage.View
	last *htmlpage.Entry
	// hidden counts the events without a place in the page, by type.
	hidden map[string]int
}

func newPage(ctx context.Context, w *bufio.Writer, log *eventlog.Log) *page {
	p := &page{w: w, view: htmlpage.View{Whole: true, Plain: true, Body: interop.Bodies(ctx, log), Turn: turn}, hidden: map[string]int{}}
	p.all, p.err = templates()
	return p
}

// write writes a template of the page.
func (p *page) write(name string, data any) {
	if p.err == nil {
		p.err = p.all.ExecuteTemplate(p.w, name, data)
	}
}

// head writes the start of the page.
func (p *page) head(a *transcript.About) {
	p.write("head", htmlpage.Layout{Title: transcript.Visible(a.Title), Alone: true, Body: a})
}

// entry writes an entry. If readers need no note of an event, it counts the event.
func (p *page) entry(x *transcript.Entry) {
	e := p.view.Entry(x)
	if e == nil {
		p.hidden[string(x.Event.Type)]++
		return
	}
	e.Again(p.last)
	p.last = e
	p.write("entry", e)
}

// turn heads a turn with its number and its beginning.
func turn(x *transcript.Entry) *htmlpage.Turn {
	t := htmlpage.NewTurn(x)
	if began := transcript.Clock(x.Event.Timestamp); began != "" {
		t.Facts = []string{began}
	}
	return t
}

// foot writes the end of the page, and the number of hidden events.
func (p *page) foot(a *transcript.About) {
	p.write("foot", struct{ Events, Hidden string }{transcript.Count(a.Head.Seq, "event"), transcript.TypeCounts(p.hidden)})
}

func (p *page) flush() error {
	if p.err == nil {
		p.err = p.w.Flush()
	}
	return p.err
}
