// Package writing has what the writers of sessions share: the part of a history that every
// program can read, the losses, and lines of JSON.
package writing

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
)

// Rules say what a program can read, beside text, calls, results and images.
type Rules struct {
	// Program is the format whose contexts stay: messages that its program wrote in the
	// user's name. Empty is none.
	Program string
	// Reasoning reports whether the program passes the reasoning on to its model.
	Reasoning func(m *event.Message, p *event.Part) bool
	// ErrorMarks: results can be errors. Documents: messages can have documents.
	ErrorMarks, Documents bool
	// Opaque reports whether the program can read a server tool's part or an opaque part.
	Opaque func(m *event.Message, p *event.Part) bool
}

// Said is a message that a program can read, and its time.
type Said struct {
	Seq int64
	At  time.Time
	event.Message
}

// Messages returns the messages of a conversation without what the program cannot read, and
// the losses. No message is empty.
func Messages(c interop.Conversation, rules Rules) (all []Said, losses map[string][]int64) {
	losses = map[string][]int64{}
	for i := range c.History {
		e := &c.History[i]
		lose := func(kind string) { losses[kind] = append(losses[kind], e.Seq) }
		switch {
		case e.Context != "" || c.Contexts[e.Seq] && (rules.Program == "" || c.Format != rules.Program):
			lose("context")
			continue
		case e.Message.Role == event.System || e.Message.Role == event.Developer:
			lose("system")
			continue
		case e.Made == "interrupted":
			lose("interrupted")
		case e.Made == "redacted":
			lose("erased")
		}
		m := e.Message
		m.Parts = rules.parts(&m, m.Parts, lose)
		if len(m.Parts) > 0 {
			all = append(all, Said{e.Seq, timeOf(c, i), m})
		}
	}
	return all, losses
}

func timeOf(c interop.Conversation, i int) time.Time {
	if i < len(c.Times) && !c.Times[i].IsZero() {
		return c.Times[i].UTC()
	}
	return c.At.UTC()
}

// parts returns the parts that the program can read.
func (r Rules) parts(m *event.Message, parts []event.Part, lose func(kind string)) (kept []event.Part) {
	for _, p := range parts {
		switch p.Type {
		case event.ReasoningPart:
			if r.Reasoning == nil || !r.Reasoning(m, &p) {
				lose("reasoning")
				continue
			}
		case event.ServerToolCallPart, event.ServerToolResultPart:
			if r.Opaque == nil || !r.Opaque(m, &p) {
				lose("server_tool")
				continue
			}
		case event.OpaquePart:
			if r.Opaque == nil || !r.Opaque(m, &p) {
				lose("opaque")
				continue
			}
		case event.ToolResultPart:
			if p.IsError && !p.Interrupted && !r.ErrorMarks {
				lose("error_mark")
			}
			p.Content = r.parts(m, p.Content, lose)
		case event.AudioPart:
			lose("audio")
		case event.DocumentPart:
			if !r.Documents {
				lose("document")
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// OfCompaction is how many messages at the beginning a compaction made.
func OfCompaction(said []Said) (n int) {
	for n < len(said) && said[n].Seq == 0 {
		n++
	}
	return n
}

// Entries returns the messages as a history, for the packages that render requests.
func Entries(said []Said) []projection.Entry {
	history := make([]projection.Entry, len(said))
	for i := range said {
		history[i] = projection.Entry{Seq: said[i].Seq, Message: said[i].Message}
	}
	return history
}

// LastModel is the model of the newest answer that has one; empty if none has.
func LastModel(history []projection.Entry) (provider, model string) {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i].Message; m.Role == event.Assistant && m.Model != "" {
			return m.Provider, m.Model
		}
	}
	return "", ""
}

// Lines are lines of JSON.
type Lines struct {
	buf bytes.Buffer
	err error
}

// Add adds a value as a line.
func (l *Lines) Add(v any) {
	if l.err != nil {
		return
	}
	if l.err = json.MarshalWrite(&l.buf, v); l.err == nil {
		l.buf.WriteByte('\n')
	}
}

// Bytes returns the lines, or the first error.
func (l *Lines) Bytes() ([]byte, error) { return l.buf.Bytes(), l.err }

// Stamp is a time as the programs write it: RFC 3339 with milliseconds.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
