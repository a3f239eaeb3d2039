package codex

import (
	"strconv"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
)

// compaction is what becomes of a compacted record: the history that the model
// sees from there on, whose messages refer to those that were said where they
// are the same. Older versions tell of a summary only: behind what the user said.
func (im *importer) compaction(l *line) (eventlog.Payload, error) {
	s := im.s
	if s.Seq() == 0 {
		return nil, nil
	}
	c := eventlog.Compaction{Strategy: "summary", Covers: eventlog.Covers{From: 1, To: s.Seq()}, Replace: true, Summary: l.text("message")}
	o := l.members
	history := o.Take("replacement_history")
	items, err := rawjson.Elements(history)
	if err != nil || len(items) == 0 {
		return s.summarised(c, l), nil
	}
	left := s.path.messages()
	var rest []rawjson.Member // of entries that refer to messages, by their index
	for _, v := range items {
		m, ok, err := im.message(v, "")
		if err != nil {
			return nil, err
		}
		if !ok {
			m = eventlog.Message{Role: eventlog.Assistant, Parts: []eventlog.Part{eventlog.Opaque(kindOf(v), v)}}
		}
		if m.Role == eventlog.Assistant {
			m.Provider, m.Model = s.labels[providerLabel], s.labels[modelLabel]
		}
		e, same := entry(&left, &m)
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

// entry refers to the first of the messages left that says the same, or holds
// the message itself. same is false where the message has an extra which the one
// that is referred to has not.
func entry(left *[]note, m *eventlog.Message) (e eventlog.CompactionEntry, same bool) {
	d := digestOf(m)
	for i, n := range *left {
		if n.digest == d {
			*left = append((*left)[:i:i], (*left)[i+1:]...)
			return eventlog.CompactionEntry{Seq: n.seq}, m.Extra == nil || canonical(m.Extra) == n.extra
		}
	}
	return eventlog.CompactionEntry{Message: m}, true
}

// summarised keeps what the user said, and the summary; nil if there is none.
func (s *session) summarised(c eventlog.Compaction, l *line) eventlog.Payload {
	if c.Summary == "" {
		return nil
	}
	for _, n := range s.path.messages() {
		if n.role == eventlog.User || n.role == eventlog.Developer || n.role == eventlog.System {
			c.Entries = append(c.Entries, eventlog.CompactionEntry{Seq: n.seq})
		}
	}
	summary := eventlog.Message{Role: eventlog.User, Parts: []eventlog.Part{eventlog.Text(c.Summary)}}
	c.Entries = append(c.Entries, eventlog.CompactionEntry{Message: &summary})
	o := l.members
	o.Take("message")
	c.Extra = l.extra(o.Rest())
	return c
}
