package entire

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// version is that of the format.
const version = "1"

// line is a line of a transcript: its members that were not told yet.
type line struct {
	parts.Members
	rec  *interop.Record
	kind string
	at   time.Time // zero if it does not say
}

func lineOf(rec *interop.Record) line {
	o, _ := parts.Open(rec.Value) // one that cannot be read has no members, and is kept raw
	return line{Members: o, rec: rec, kind: o.PeekText("type"), at: interop.Time(o.PeekText("ts"))}
}

func (l *line) agent() string { return l.PeekText("agent") }

// session is the id of the session that begins with the line.
func (l *line) session(f *document.File) string {
	if l.at.IsZero() {
		return f.Session("")
	}
	at := l.PeekText("ts")
	sum := event.DigestOf([]byte(strings.Join([]string{l.agent(), at, l.kind, l.begins()}, "\x00")))
	return document.Name(l.agent()+"-"+at) + "-" + sum.Hex()[:8]
}

// begins is the first text of the line, as far as a line that grows keeps it.
func (l *line) begins() string {
	content := l.Peek("content")
	if text, ok := rawjson.Text(content); ok {
		return text
	}
	blocks, err := rawjson.Elements(content)
	if err != nil || len(blocks) == 0 {
		return ""
	}
	o, err := parts.Open(blocks[0])
	if err != nil {
		return ""
	}
	return o.PeekText("text")
}

// says reports whether the line is a message.
func (l *line) says() bool {
	if string(l.Peek("v")) != version || l.kind != "user" && l.kind != "assistant" {
		return false
	}
	switch l.Peek("content").Kind() {
	case '[', '"', 'n', jsontext.KindInvalid:
		return true
	}
	return false
}

// blocks are what the content holds: each a record of its own, but for a text, which
// is the line's.
func (l *line) blocks() ([]interop.Record, error) {
	content := l.Peek("content")
	switch content.Kind() {
	case '[':
		return document.Elements(l.rec, content)
	case '"':
		return []interop.Record{document.Subrecord(l.rec, content)}, nil
	}
	return nil, nil
}

// usage takes the tokens. What is no number of tokens is left.
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

// rest is what has no place of its own; nil if there is nothing.
func (l *line) rest(agent string, cli jsontext.Value) jsontext.Value {
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
