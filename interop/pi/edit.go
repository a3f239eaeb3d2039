package pi

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// editable is what an edit of a record keeps: all but the content.
type editable struct {
	role       event.Role
	call, tool string // of a result
	failed     bool
	model      string
}

// edit is a context_edit: from then on the model sees other content, or nothing, in the place
// of a record.
type edit struct {
	seq, target int64
	// replacement is {"content": …}, or null.
	replacement jsontext.Value
}

// note indexes what edits and later compactions need of the record at seq.
func (s *session) note(f *facts, seq int64) {
	switch f.kind {
	case "message":
		o := f.message
		x := editable{role: event.User, model: o.PeekText("model")}
		switch f.role {
		case "assistant":
			x.role = event.Assistant
		case "toolResult":
			x.role, x.call, x.tool, x.failed = event.Tool, o.PeekText("toolCallId"), o.PeekText("toolName"), o.Peek("isError").Kind() == 't'
		}
		s.editable[seq] = x
	case "custom_message", "branch_summary":
		s.editable[seq] = editable{role: event.User}
	case "context_edit":
		if target, ok := s.nodes[f.text("targetId")]; ok {
			s.edits = append(s.edits, edit{seq, target, f.value("replacement").Clone()})
		}
	}
}

// edited returns the message in the place of the record at seq, after the edits on the active
// path that are not older than from. ok is false if there is no such edit; m is nil if an edit
// removes the record.
func (s *session) edited(c *converter, seq, from int64) (m *event.Message, ok bool, err error) {
	for _, e := range slices.Backward(s.edits) {
		if e.target != seq || e.seq < from || !s.trail.Holds(e.seq) {
			continue
		}
		m, err := c.replaced(s.editable[seq], e.replacement)
		return m, true, err
	}
	return nil, false, nil
}

// contextEdit converts a context_edit to a compaction of one record; nil if the record is
// unknown, or the replacement is malformed.
func (c *converter) contextEdit(s *session, f *facts) (event.Payload, error) {
	target, ok := s.nodes[f.text("targetId")]
	x, isEditable := s.editable[target]
	v := f.value("replacement")
	if !ok || !isEditable || v == nil {
		return nil, nil
	}
	p := event.Compaction{Strategy: f.kind, Covers: event.Stretch{From: target, To: target}, Extra: f.withoutMembers()}
	m, err := c.replaced(x, v)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		p.Entries = []event.CompactionEntry{{Message: m}}
	case v.Kind() != 'n':
		return nil, nil
	}
	return p, nil
}

// replaced is a message with the content of a replacement; nil if there is none.
func (c *converter) replaced(x editable, replacement jsontext.Value) (*event.Message, error) {
	o, err := parts.Open(replacement)
	if err != nil || !o.Has("content") {
		return nil, nil //nolint:nilerr // null
	}
	content, err := c.content(o.Take("content"))
	if err != nil {
		return nil, err
	}
	m := &event.Message{Role: x.role, Model: x.model, Parts: content}
	if x.role == event.Tool {
		m.Parts = []event.Part{event.ToolResult(x.call, x.tool, content...)}
		m.Parts[0].IsError = x.failed
	}
	return m, nil
}

// retained are the messages that a compaction holds itself, after its summary.
func (c *converter) retained(f *facts) (all []event.CompactionEntry, err error) {
	v := f.value("retainedTail")
	if v.Kind() != '[' {
		return nil, nil
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		of := facts{kind: "message"}
		if of.message, err = parts.Open(e); err != nil {
			return nil, nil //nolint:nilerr // the record keeps it
		}
		of.role = of.message.PeekText("role")
		p, _, err := c.message(&of)
		if err != nil {
			return nil, err
		}
		switch m := p.(type) {
		case event.Message:
			m.Usage, m.Extra = event.Usage{}, nil // the original counts; the record has the extra
			all = append(all, event.CompactionEntry{Message: &m})
		case event.ContextEntry:
			all = append(all, event.CompactionEntry{Message: &event.Message{Role: event.User, Parts: m.Parts}})
		}
	}
	return all, nil
}

// erase notes the content of a redacted message.
func (s *session) erase(message *parts.Members) {
	if v := message.Peek("content"); v != nil {
		s.erased[contentDigest(v)] = true
	}
}

// repeatsErased reports whether a compaction holds a message that is redacted in the session.
func (s *session) repeatsErased(f *facts) bool {
	if len(s.erased) == 0 || f.kind != "compaction" || f.value("retainedTail").Kind() != '[' {
		return false
	}
	elements, err := rawjson.Elements(f.value("retainedTail"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(elements, func(v jsontext.Value) bool {
		m, err := parts.Open(v)
		return err == nil && m.Has("content") && s.erased[contentDigest(m.Peek("content"))]
	})
}

func contentDigest(v jsontext.Value) event.Digest {
	v = v.Clone()
	_ = v.Compact() // a value of a parsed record
	return event.DigestOf(v)
}
