package htmlpage

import (
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"github.com/convlog/convlog/internal/transcript"
)

// maxMarkdown is the longest text that is read as Markdown, in bytes. A longer text is plain.
const maxMarkdown = 128 << 10

// markdown renders the text of a message.
func (v *View) markdown(text string) template.HTML {
	text = transcript.Visible(text)
	if v.parser == nil {
		v.parser = newParser(v)
	}
	var b strings.Builder
	if len(text) <= maxMarkdown && v.parser.Convert([]byte(text), &b) == nil {
		return template.HTML(b.String())
	}
	return template.HTML(`<div class="plain">` + template.HTMLEscapeString(text) + `</div>`)
}

func newParser(v *View) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), extension.Strikethrough, extension.TaskList,
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"}))),
		goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(safe{v}, 1))),
		goldmark.WithParserOptions(parser.WithEscapedSpace()),
	)
}

// safe renders the nodes that could be more than text: raw HTML is text, a link leads to http or
// https, an image is a link, and a heading is below the headings of the page.
type safe struct{ view *View }

func (s safe) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, htmlBlock)
	r.Register(ast.KindRawHTML, rawHTML)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
	r.Register(ast.KindImage, image)
	r.Register(ast.KindHeading, heading)
	r.Register(ast.KindCodeBlock, s.codeBlock)
	r.Register(ast.KindFencedCodeBlock, s.codeBlock)
}

func escape(w util.BufWriter, text []byte) { template.HTMLEscape(w, text) }

func htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.HTMLBlock)
	_, _ = w.WriteString(`<p class="plain">`)
	escape(w, n.Lines().Value(source))
	if n.HasClosure() {
		escape(w, n.ClosureLine.Value(source))
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkSkipChildren, nil
}

func rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		escape(w, node.(*ast.RawHTML).Segments.Value(source))
	}
	return ast.WalkSkipChildren, nil
}

// Linked is the address of a link; ok is false if it leads to no http or https server.
func Linked(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", false
	}
	return u.String(), true
}

func openLink(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a rel="noreferrer noopener" href="`)
	escape(w, []byte(address))
	_, _ = w.WriteString(`">`)
}

// link renders a link. If it leads to no server, its text and its address are text.
func link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Link)
	address, ok := Linked(string(n.Destination))
	switch {
	case ok && entering:
		openLink(w, address)
	case ok:
		_, _ = w.WriteString("</a>")
	case !entering && len(n.Destination) > 0:
		_, _ = w.WriteString(` <code class="to">`)
		escape(w, n.Destination)
		_, _ = w.WriteString("</code>")
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	address, ok := Linked(string(n.URL(source)))
	if n.AutoLinkType == ast.AutoLinkEmail || !ok {
		escape(w, n.Label(source))
		return ast.WalkContinue, nil
	}
	openLink(w, address)
	escape(w, n.Label(source))
	_, _ = w.WriteString("</a>")
	return ast.WalkContinue, nil
}

// image renders the address of an image, which the page does not load.
func image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.Image)
	address, ok := Linked(string(n.Destination))
	_, _ = w.WriteString("🖼 ")
	if ok {
		openLink(w, address)
	}
	if alt := nodeText(n, source); alt != "" {
		escape(w, []byte(alt))
	} else {
		escape(w, n.Destination)
	}
	if ok {
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkSkipChildren, nil
}

// nodeText is the text below a node.
func nodeText(node ast.Node, source []byte) string {
	var b strings.Builder
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(nodeText(c, source))
		}
	}
	return b.String()
}

// heading renders a heading as text with weight: the headings of the page are its turns.
func heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		class := "h2"
		if node.(*ast.Heading).Level == 1 {
			class = "h1"
		}
		_, _ = w.WriteString(`<p class="` + class + `">`)
	} else {
		_, _ = w.WriteString("</p>\n")
	}
	return ast.WalkContinue, nil
}

func (s safe) codeBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if n, ok := node.(*ast.FencedCodeBlock); ok {
		language = string(n.Language(source))
	}
	_, _ = w.WriteString(`<pre tabindex="0">`)
	_, _ = w.WriteString(string(s.view.code(strings.TrimRight(string(node.Lines().Value(source)), "\n"), language)))
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkSkipChildren, nil
}
