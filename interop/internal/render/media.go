package render

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/modelapi"
)

// Media is the body of an image, a sound or a document: a URL, or bytes.
type Media struct {
	// Type is the media type, in lower case and without parameters. The bytes decide
	// it if they are of a known type, else the part does.
	Type string
	Name string
	URL  string
	Data []byte
}

// Load loads the body of a part with blob. ok is false if there is no body: blob is
// nil, or the body is empty.
func Load(p *event.Part, blob func(event.BlobRef) ([]byte, error)) (m Media, ok bool, err error) {
	m = Media{Type: mediaType(p.MediaType), Name: p.Name, URL: p.URL, Data: p.Data}
	if !p.Blob.IsZero() && blob != nil {
		if m.Data, err = blob(p.Blob); err != nil {
			return m, false, fmt.Errorf("load %s: %w", p.Blob.Blob, err)
		}
	}
	if rest, inline := strings.CutPrefix(p.URL, "data:"); inline {
		m.inline(rest)
	}
	if known := sniff(m.Data); known != "" {
		m.Type = known
	}
	return m, len(m.Data) > 0 || m.remote(), nil
}

// remote reports whether the body has a URL that a provider can fetch.
func (m *Media) remote() bool {
	u, err := url.Parse(m.URL)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// inline parses the rest of a data: URL.
func (m *Media) inline(rest string) {
	m.URL = ""
	head, body, _ := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if m.Type == "" {
		m.Type = mediaType(kind)
	}
	var err error
	if isBase64 {
		m.Data, err = base64.StdEncoding.DecodeString(body)
	} else {
		body, err = url.PathUnescape(body)
		m.Data = []byte(body)
	}
	if err != nil {
		m.Data = nil
	}
}

// Base64 is the body in base64.
func (m *Media) Base64() string { return base64.StdEncoding.EncodeToString(m.Data) }

// Address is the URL of the body, or a data: URL with the body.
func (m *Media) Address() string {
	if m.URL != "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + m.Base64()
}

// FileName is the name of the body, or a default: some providers require a name.
func (m *Media) FileName() string {
	if modelapi.Blank(m.Name) {
		return "document"
	}
	return m.Name
}

// HasBody reports whether a part is an image, a sound or a document.
func HasBody(p *event.Part) bool {
	return p.Type == event.ImagePart || p.Type == event.AudioPart || p.Type == event.DocumentPart
}

// Words is the text of a part for a place that accepts text only; empty if there is
// none.
func Words(p *event.Part) string {
	switch {
	case HasBody(p):
		return Placeholder(p)
	case p.Type == event.TextPart && !modelapi.Blank(p.Text):
		return p.Text
	default:
		return ""
	}
}

// IsImage reports whether the body is an image that models accept, or a URL.
func (m *Media) IsImage() bool {
	switch m.Type {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	default:
		return m.URL != ""
	}
}

// IsText reports whether the body is valid text, and not blank.
func (m *Media) IsText() bool {
	text := strings.HasPrefix(m.Type, "text/") || m.Type == "application/json" || m.Type == "application/xml"
	return text && utf8.Valid(m.Data) && !modelapi.Blank(string(m.Data))
}

// Placeholder describes a body in words, for a place that accepts text only.
func Placeholder(p *event.Part) string {
	words := []string{string(p.Type)}
	for _, w := range []string{p.MediaType, p.Name} {
		if w != "" {
			words = append(words, w)
		}
	}
	switch {
	case strings.HasPrefix(p.URL, "data:"):
	case p.URL != "":
		words = append(words, p.URL)
	case p.Blob.Bytes > 0:
		words = append(words, fmt.Sprintf("%d bytes", p.Blob.Bytes))
	case len(p.Data) > 0:
		words = append(words, fmt.Sprintf("%d bytes", len(p.Data)))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func mediaType(s string) string {
	if kind, _, err := mime.ParseMediaType(s); err == nil {
		return kind
	}
	return strings.ToLower(strings.TrimSpace(s))
}

// sniff returns the media type of a body that begins like a format that providers
// accept; empty for any other body.
func sniff(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp"
	case bytes.HasPrefix(b, []byte("%PDF-")):
		return "application/pdf"
	default:
		return ""
	}
}
