package htmlpage

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io/fs"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Assets are the style sheet, the script and the icon of pages.
func Assets() fs.FS {
	files, _ := fs.Sub(assetFiles, "assets") // the folder is embedded
	return files
}

// style is the style sheet.
func style() template.CSS {
	text, _ := assetFiles.ReadFile("assets/style.css") // an embedded file
	return template.CSS(text)
}

// styleDigest is the digest of the style sheet for a Content-Security-Policy.
func styleDigest() string {
	sum := sha256.Sum256([]byte(style()))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Layout is a page, as the template "layout" shows it. Body is for the template "content",
// which each page defines. A page that is written in parts executes "top" and "bottom".
type Layout struct {
	Title string
	Nav   []Link
	Query string // in the field of the search
	// Alone makes a page without a server: it has its style, and a policy that allows nothing but
	// this style, images and sounds.
	Alone bool
	Forms bool // the page has forms that change something: they send their origin
	Body  any
}

// Link is a link of a navigation.
type Link struct {
	Name, Href string
	On         bool // the page is there
}

// Templates returns the templates of this package with those of files, which define "content".
// Times are in a zone.
func Templates(zone *time.Location, files fs.FS, names ...string) (*template.Template, error) {
	t := template.New("layout").Funcs(functions(zone))
	t, err := t.ParseFS(templateFiles, "templates/*.html")
	if err != nil || len(names) == 0 {
		return t, err
	}
	return t.ParseFS(files, names...)
}

// functions are the functions of templates.
func functions(zone *time.Location) template.FuncMap {
	in := func(layout string) func(time.Time) string {
		return func(t time.Time) string {
			if event.Dated(t).IsZero() {
				return ""
			}
			return t.In(zone).Format(layout)
		}
	}
	return template.FuncMap{
		"style": style, "styleDigest": styleDigest,
		"clock": in("15:04:05"), "minute": in("2 Jan 2006, 15:04"),
		"stamp":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"thousands": func(n any) string { return transcript.Thousands(integer(n)) },
		"visible":   transcript.Visible,
		"count":     func(n any, noun string) string { return transcript.Count(integer(n), noun) },
		"list":      func(all ...string) []string { return all },
		"spend":     Spend,
	}
}

func integer(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case int64:
		return n
	}
	return 0
}
