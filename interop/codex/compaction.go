package codex

import (
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// compaction converts a compacted record to the new context of the model. An entry
// refers to an earlier message if the two are equal, and holds the message otherwise.
// Older versions record only a summary: it follows the messages of the user.
func (im *importer) compaction(l *line) (event.Payload, error) {
	s := im.s
	if s.Seq() == 0 {
		return nil, nil
	}
	c := event.Compaction{Strategy: "summary", Covers: event.Stretch{From: 1, To: s.Seq()}, Replace: true, Summary: l.text("message")}
	o := l.members
	history := o.Take("replacement_history")
	items, err := rawjson.Elements(history)
	if err != nil || len(items) == 0 {
		return s.summaryOnly(c, l), nil
	}
	candidates := s.path.activeMessages()
	var rest []rawjson.Member // extras of entries with a message, by index
	for _, v := range items {
		m, ok, err := im.message(v, "", parts.PutBlob(im.ctx, im.log))
		if err != nil {
			return nil, err
		}
		if !ok {
			m = event.Message{Role: event.Assistant, Parts: []event.Part{event.Opaque(kindOf(v), v)}}
		}
		if m.Role == event.Assistant {
			m.Provider, m.Model = s.labels[providerLabel], s.labels[modelLabel]
		}
		e, same := entry(&candidates, &m)
		if !same {
			rest = append(rest, rawjson.Member{Name: strconv.Itoa(len(c.Entries)), Value: m.Extra})
		}
		c.Entries = append(c.Entries, e)
	}
	if len(rest) > 0 {
		o.Put("entries", rawjson.NonEmpty(rest))
	}
	o.Take("message")
	c.Extra = l.extra(o.Rest())
	return c, nil
}

// entry refers to the first equal message among the candidates, and removes it from
// them. If there is none, the entry holds the message. same is false if the extra of m
// must be stored too.
func entry(candidates *[]pathMessage, m *event.Message) (e event.CompactionEntry, same bool) {
	d := digestOf(m)
	for i, n := range *candidates {
		if n.digest == d {
			*candidates = append((*candidates)[:i:i], (*candidates)[i+1:]...)
			return event.CompactionEntry{Seq: n.seq}, m.Extra == nil || canonical(m.Extra) == n.extra
		}
	}
	return event.CompactionEntry{Message: m}, true
}

// summaryOnly keeps the messages of the user, and adds the summary; nil if it is empty.
func (s *session) summaryOnly(c event.Compaction, l *line) event.Payload {
	if c.Summary == "" {
		return nil
	}
	for _, n := range s.path.activeMessages() {
		if n.role == event.User || n.role == event.Developer || n.role == event.System {
			c.Entries = append(c.Entries, event.CompactionEntry{Seq: n.seq})
		}
	}
	summary := event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}}
	c.Entries = append(c.Entries, event.CompactionEntry{Message: &summary})
	o := l.members
	o.Take("message")
	c.Extra = l.extra(o.Rest())
	return c
}
