package entire

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// version is the version of the format.
const version = "1"

// line is a line of a transcript: the members that no event has yet.
type line struct {
	parts.Members
	rec  *records.Record
	kind string
	at   time.Time // zero if the line has no time
}

func lineOf(rec *records.Record) line {
	o, _ := parts.Open(rec.Value) // an unreadable line has no members and is stored raw
	return line{Members: o, rec: rec, kind: o.PeekText("type"), at: records.Time(o.PeekText("ts"))}
}

func (l *line) agent() string { return l.PeekText("agent") }

// sessionID returns the id of the session whose first line is l.
func (l *line) sessionID(f *document.File) string {
	if l.at.IsZero() {
		return f.Session("")
	}
	at := l.PeekText("ts")
	sum := event.DigestOf([]byte(l.agent() + "\x00" + at))
	return document.Name(l.agent()+"-"+at) + "-" + sum.Hex()[:8]
}

// isMessage reports whether the line is a message of this version.
func (l *line) isMessage() bool {
	if string(l.Peek("v")) != version || l.kind != "user" && l.kind != "assistant" {
		return false
	}
	switch l.Peek("content").Kind() {
	case '[', '"', 'n', jsontext.KindInvalid:
		return true
	}
	return false
}

// blocks splits the content into one record per block. A content string is one
// record.
func (l *line) blocks() ([]records.Record, error) {
	content := l.Peek("content")
	switch content.Kind() {
	case '[':
		return document.Elements(l.rec, content)
	case '"':
		return []records.Record{document.Subrecord(l.rec, content)}, nil
	}
	return nil, nil
}

// usage takes the token counts. A member that is not a valid count stays in the line.
func (l *line) usage() (u event.Usage) {
	for name, field := range map[string]*int64{"input_tokens": &u.InputTokens, "output_tokens": &u.OutputTokens} {
		var n int64
		if v := l.Peek(name); v.Kind() == '0' && json.Unmarshal(v, &n) == nil && n >= 0 {
			*field = n
			l.Take(name)
		}
	}
	return u
}

// extra returns the members without a counterpart in the event; nil if there are
// none.
func (l *line) extra(agent string, cli jsontext.Value) jsontext.Value {
	for _, name := range []string{"v", "type"} {
		l.Take(name)
	}
	if !l.at.IsZero() {
		l.Take("ts")
	}
	if l.agent() == agent {
		l.Take("agent")
	}
	if string(l.Peek("cli_version")) == string(cli) {
		l.Take("cli_version")
	}
	return l.Rest()
}
