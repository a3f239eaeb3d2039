package html

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop/internal/render"
)

// call writes a call and its result.
func (p *page) call(part *event.Part, x *transcript.Entry) {
	p.tag("<div class=\"call\"><div><span class=\"a\">→</span> <b>")
	p.text(part.Name)
	p.tag("</b>")
	arguments := transcript.Arguments(part.Arguments)
	if line := transcript.OneLine(arguments); line != "" {
		p.tag(" <code>")
		p.text(line)
		p.tag("</code>")
		arguments = nil
	}
	p.tag("</div>\n")
	for _, a := range arguments {
		p.argument(&a)
	}
	if x != nil && part.Type == event.ToolCallPart {
		p.resultOf(part, x)
	}
	p.tag("</div>\n")
}

// argument writes an argument below the line of its call.
func (p *page) argument(a *transcript.Argument) {
	line := transcript.OneLine([]transcript.Argument{{Text: a.Text}})
	if line == "" {
		p.output(a.Name, a.Text)
		return
	}
	p.tag("<div>")
	p.detail(a.Name)
	p.tag(" <code>")
	p.text(line)
	p.tag("</code></div>\n")
}

// resultOf writes the result of a call, or "no result".
func (p *page) resultOf(part *event.Part, x *transcript.Entry) {
	r, ok := x.Results[part.CallID]
	if !ok {
		p.tag("<div class=\"w\">no result</div>\n")
		return
	}
	if r.Seq != p.lastAnchor { // one event may hold several results
		p.tag("<span")
		p.attr("id", fmt.Sprintf("e%d", r.Seq))
		p.tag("></span>")
	}
	p.lastAnchor = r.Seq
	p.result(&r.Part, fmt.Sprintf("#%d", r.Seq))
}

// result writes a result. from names its event or its call.
func (p *page) result(part *event.Part, from string) {
	class, word := markup("result"), "←"
	switch {
	case part.Interrupted:
		class, word = "result error", "← interrupted"
	case part.IsError:
		class, word = "result error", "← error"
	}
	heading := func() {
		p.tag(`<span class="a">`)
		p.text(word)
		p.tag(`</span> <span class="w">`)
		p.text(from)
		p.tag(`</span> `)
	}
	p.tag(`<div class="` + class + `">`)
	if first := part.Content; len(first) == 1 && first[0].Type == event.TextPart {
		p.fold(heading, first[0].Text)
	} else {
		heading()
		p.outputs(part.Content)
	}
	p.tag("</div>\n")
}

// maxBody is the largest embedded body, in bytes.
const maxBody = 32 << 20

// media embeds an image or a sound, writes a text as output, and any other body as a
// placeholder.
func (p *page) media(part *event.Part) {
	if part.Blob.Bytes > maxBody {
		p.placeholder(part, "too large for the page")
		return
	}
	m, ok, err := render.Load(part, p.blob)
	switch {
	case err != nil:
		p.placeholder(part, "the body is missing")
	case !ok || m.URL != "":
		p.placeholder(part, "")
	case part.Type == event.ImagePart && m.IsImage():
		p.tag("<div><img")
		p.attr("alt", render.Placeholder(part))
		p.attr("src", m.Address())
		p.tag("></div>\n")
	case part.Type == event.AudioPart && strings.HasPrefix(m.Type, "audio/"):
		p.tag("<div><audio controls")
		p.attr("src", m.Address())
		p.tag("></audio></div>\n")
	case m.IsText():
		p.output(render.Placeholder(part), string(m.Data))
	default:
		p.placeholder(part, "")
	}
}

// placeholder describes a body that is not embedded. A URL becomes a link; the page
// does not load it.
func (p *page) placeholder(part *event.Part, why string) {
	p.tag(`<div class="w">`)
	if strings.HasPrefix(part.URL, "https://") || strings.HasPrefix(part.URL, "http://") {
		p.tag(`<a rel="noopener noreferrer"`)
		p.attr("href", part.URL)
		p.tag(`>`)
		p.text(render.Placeholder(part))
		p.tag(`</a>`)
	} else {
		p.text(render.Placeholder(part))
	}
	p.detail(why)
	p.tag("</div>\n")
}
