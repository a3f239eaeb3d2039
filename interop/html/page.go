package html

import (
	"bufio"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// page writes a page. It keeps the first write error.
type page struct {
	w    *bufio.Writer
	err  error
	blob func(event.BlobRef) ([]byte, error)
	// hidden counts the events without a place in the page, by type.
	hidden map[string]int
	// lastAnchor is the seq of the last result with an anchor.
	lastAnchor int64
}

// markup is HTML from this package. Text of a session never becomes markup.
type markup string

func (p *page) tag(m markup) {
	if p.err == nil {
		_, p.err = p.w.WriteString(string(m))
	}
}

// text writes text of a session, escaped.
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
