// Package html writes a session as one page of HTML that needs nothing else: no
// script, no other file, no network. Images stand in the page itself. Long output
// is folded, and light or dark follows the reader's system.
//
// All that the session says is escaped, and the page's own policy lets a browser
// run and load nothing but the style and images that are in it.
package html

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/transcript"
)

// Options say what is written. The zero value writes the active path.
type Options struct {
	// All writes what was rewound too, and marks it.
	All bool
}

// Write writes a session as a page: its turns, messages, calls with their results,
// reasoning, compactions and forks. It reads the session twice, and holds no more
// of it in memory than a few messages at a time. A missing session is ErrNotFound;
// a body that is missing is said to be so in the page.
func Write(ctx context.Context, w io.Writer, log *eventlog.Log, session string, opts ...Options) error {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if w == nil {
		return fmt.Errorf("write page of session %q: the writer is nil", session)
	}
	about, err := transcript.Load(ctx, log, session)
	if err != nil {
		return err
	}
	p := page{w: bufio.NewWriterSize(w, 64<<10), blob: interop.Bodies(ctx, log), hidden: map[string]int{}}
	p.head(&about)
	for x, err := range transcript.Read(ctx, log, session, transcript.Options{All: o.All}) {
		if err != nil {
			return err
		}
		if p.entry(x); p.err != nil {
			break
		}
	}
	p.foot(&about)
	if err := p.flush(); err != nil {
		return fmt.Errorf("write page of session %q: %w", session, err)
	}
	return nil
}

// head begins the page.
func (p *page) head(a *transcript.About) {
	p.tag("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p.tag("<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n")
	p.tag("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	p.tag("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>")
	p.text(a.Title)
	p.tag("</title>\n<style>" + style + "</style>\n</head>\n<body>\n<header>\n<h1>")
	p.text(a.Title)
	p.tag("</h1>\n<dl>\n")
	for _, f := range a.Facts() {
		p.tag("<dt>")
		p.text(f.Name)
		p.tag("</dt><dd>")
		p.text(f.Text)
		p.tag("</dd>\n")
	}
	p.tag("</dl>\n</header>\n<main>\n")
}

// foot ends the page, and says what is not in it.
func (p *page) foot(a *transcript.About) {
	p.tag("</main>\n<footer>")
	p.text(interop.Count(a.Head.Seq, "event"))
	if not := transcript.TypeCounts(p.hidden); not != "" {
		p.text("; not shown: " + not)
	}
	p.tag("</footer>\n</body>\n</html>\n")
}
