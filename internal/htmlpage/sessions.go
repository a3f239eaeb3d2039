package htmlpage

import (
	"cmp"
	"strings"

	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
)

// Session is a session in a list, as the template "sessions" shows it.
type Session struct {
	*listing.Row
	Link, Name string
	About      []string
	Growing    bool
	Problem    string
}

// NewSession describes a row for a list.
func NewSession(row *listing.Row, link string) Session {
	x := Session{Row: row, Link: link, Name: SessionName(row)}
	if err := row.Damage(); err != nil {
		x.Problem = transcript.Visible(err.Error())
	}
	if row.Parent != "" {
		x.About = append(x.About, row.Kind()+" of "+transcript.Visible(Brief(row.Parent, 40)))
	}
	for _, text := range []string{row.Source, row.CWD} {
		if text != "" {
			x.About = append(x.About, transcript.Visible(Brief(text, 60)))
		}
	}
	return x
}

// SessionName is the label of a fork and the title, else a description.
func SessionName(row *listing.Row) string {
	const most = 110
	title := cmp.Or(Brief(row.KnownTitle(), most), row.About(), row.ID)
	if label := row.Label(); label != "" {
		title = label + " · " + title
	}
	return transcript.Visible(title)
}

// Brief is the beginning of a text on one line.
func Brief(text string, most int) string {
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) <= most {
		return string(words)
	}
	return strings.TrimRight(string(words[:most-1]), " ") + "…"
}
