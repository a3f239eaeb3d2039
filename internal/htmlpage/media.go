package htmlpage

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// Media is an image, a sound or a document.
type Media struct {
	// Image is the address of a raster image; empty for other bodies.
	Image template.URL
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
	if rest, ok := strings.CutPrefix(p.URL, "data:"); ok && len(data) == 0 {
		if _, body, ok := strings.Cut(rest, ";base64,"); ok {
			data, _ = base64.StdEncoding.DecodeString(body) // without it, there is a label only
		}
	}
	if kind := RasterType(data); kind != "" {
		m.Image = template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data))
	}
	return Part{Kind: "media", Media: m}
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
	if size > 0 {
		words = append(words, transcript.Size(size))
	}
	return transcript.Visible(fmt.Sprintf("%s %s", p.Type, join(words...)))
}
