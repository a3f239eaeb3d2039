package html

import (
	"bufio"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/transcript"
)

// page is being written. The first error of writing is kept.
type page struct {
	w    *bufio.Writer
	err  error
	blob func(event.BlobRef) ([]byte, error)
	// hidden counts the events that are not shown, by type.
	hidden map[string]int
	// anchored is the newest event that a result stands in whose place has a name.
	anchored int64
}

// markup is HTML of this package's own. Nothing that a session says becomes any.
type markup string

func (p *page) tag(m markup) {
	if p.err == nil {
		_, p.err = p.w.WriteString(string(m))
	}
}

// text writes what a session says, so that it is text and nothing else.
func (p *page) text(s string) {
	if p.err == nil {
		_, p.err = escaper.WriteString(p.w, transcript.Visible(s))
	}
}

var escaper = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&#34;", "'", "&#39;")

// attr writes an attribute.
func (p *page) attr(name markup, value string) {
	p.tag(" " + name + `="`)
	p.text(value)
	p.tag(`"`)
}

func (p *page) flush() error {
	if p.err == nil {
		p.err = p.w.Flush()
	}
	return p.err
}
