package htmlpage

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// Media is an image, a sound or a document.
type Media struct {
	// Image is the address of a raster image, and Audio of a sound; empty for other bodies.
	Image, Audio template.URL
	// Text is the text of a document; nil for other bodies.
	Text *Text
	// Label describes the body, and Link is where it can be had; empty for nowhere.
	Label, Link string
}

// maxInline is the largest body inside a page, in bytes.
const maxInline = 32 << 20

// RasterType is the media type of a raster image that browsers show, by its first bytes; empty
// for anything else.
func RasterType(data []byte) string {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

func (v *View) media(p *event.Part, link string) Part {
	m := &Media{Label: mediaLabel(p)}
	if address, ok := Linked(p.URL); ok {
		m.Link = address
	}
	data := p.Data
	if !p.Blob.IsZero() {
		if v.BodyLink != nil {
			m.Link = v.BodyLink(p.Blob)
			if p.Type == event.ImagePart {
				m.Image = template.URL(m.Link) // an address of this server
			}
			return Part{Kind: "media", Media: m}
		}
		data = v.body(m, p.Blob)
	}
	kind, _, _ := mime.ParseMediaType(p.MediaType) // an unknown type is shown as a label
	if rest, ok := strings.CutPrefix(p.URL, "data:"); ok && len(data) == 0 {
		kind, data = inline(kind, rest)
	}
	address := func(kind string) template.URL {
		return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data))
	}
	switch raster := RasterType(data); {
	case raster != "":
		m.Image = address(raster)
	case p.Type == event.AudioPart && strings.HasPrefix(kind, "audio/") && len(data) > 0 && v.BodyLink == nil:
		m.Audio = address(kind)
	case isText(kind) && utf8.Valid(data) && strings.TrimSpace(string(data)) != "":
		text := v.text(string(data), kind[strings.IndexByte(kind, '/')+1:], link)
		m.Text = &text
	}
	return Part{Kind: "media", Media: m}
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/xml"
}

// inline parses the rest of a data: URL. A body that cannot be parsed is empty.
func inline(known, rest string) (kind string, data []byte) {
	head, body, _ := strings.Cut(rest, ",")
	head, isBase64 := strings.CutSuffix(head, ";base64")
	kind, _, _ = mime.ParseMediaType(head)
	if isBase64 {
		data, _ = base64.StdEncoding.DecodeString(body)
	} else if text, err := url.PathUnescape(body); err == nil {
		data = []byte(text)
	}
	return cmp.Or(known, kind), data
}

// body reads a body for the page.
func (v *View) body(m *Media, ref event.BlobRef) []byte {
	switch {
	case v.Body == nil:
		return nil
	case ref.Bytes > maxInline:
		m.Label += ", too large for the page"
		return nil
	}
	data, err := v.Body(ref)
	if err != nil {
		m.Label += ", the body is missing"
	}
	return data
}

func mediaLabel(p *event.Part) string {
	size := int64(len(p.Data))
	if !p.Blob.IsZero() {
		size = p.Blob.Bytes
	}
	words := []string{p.Name, p.MediaType}
	if !strings.HasPrefix(p.URL, "data:") {
		words = append(words, p.URL)
	}
	if size > 0 {
		words = append(words, transcript.Size(size))
	}
	return transcript.Visible(fmt.Sprintf("%s %s", p.Type, transcript.Join(words...)))
}
