package runlog

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// content returns a payload, and nothing for an outline.
func (b *current) content(v jsontext.Value) jsontext.Value {
	if b.outline {
		return nil
	}
	return v
}

// logTo adds a line to a list. An outline has no lines.
func (b *current) logTo(list *[]LogLine, line LogLine) {
	if !b.outline {
		*list = append(*list, line)
	}
}

// contextOf adds a message to the context of a turn. An outline has no contexts.
func (b *current) contextOf(t *Turn, m *event.Message) {
	if !b.outline {
		t.Context = append(t.Context, *m)
	}
}

// outlineText is the most bytes of a text in an outline.
const outlineText = 512

// said returns a message of a turn. In an outline it has the beginning of the text only,
// with single spaces if it is shortened.
func (b *current) said(m *event.Message) event.Message {
	if !b.outline {
		return *m
	}
	text := m.Text()
	if len(text) > outlineText {
		text = strings.Join(strings.Fields(text), " ")
		end := min(outlineText, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		text = strings.Clone(text[:end])
	}
	short := event.Message{Role: m.Role, Group: m.Group}
	if text != "" {
		short.Parts = []event.Part{event.Text(text)}
	}
	return short
}
