package claude

import (
	"cmp"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// begin adds the session_started of a session, from its first record.
func (im *importer) begin(s *session, rec records.Record, f *facts, by task) error {
	start := event.Session{Title: im.titleOf(s, f), Agent: agentName, CWD: f.CWD, Source: sourceOf(&rec, f)}
	if s.side {
		start.Parent = event.SessionParent{SessionID: f.SessionID, Seq: by.seq, CallID: by.id}
	}
	e, err := rec.Event(startPart, start)
	if err == nil {
		err = s.MarkStart(&e)
	}
	if err != nil {
		return rec.Located(err)
	}
	s.tree.extend(s.Add(sessions.Key{Part: startPart}, im.at, e))
	s.titles.any = start.Title != ""
	return nil
}

const agentName = "claude-code"

// sourceOf describes the import of a session.
func sourceOf(rec *records.Record, f *facts) event.SessionSource {
	return event.SessionSource{Format: formatName, Version: f.Version, Path: rec.Origin(0).Source, SessionID: f.SessionID}
}

// titleOf returns the first title of a session: the newest title among its held records,
// or else the title of its prompt. A summary counts when its leaf arrives; see titled.
func (im *importer) titleOf(s *session, f *facts) string {
	known := map[string]string{}
	for i := range im.held {
		h := &im.held[i]
		if title := h.facts.title(); h.belongsTo(s, true) && strings.TrimSpace(title) != "" {
			known[h.facts.Type] = title
		}
	}
	return cmp.Or(known["custom-title"], known["ai-title"], f.opening().title())
}

// titles are the titles of a session so far.
type titleState struct {
	any    bool // the session has a title
	named  bool // a user or a model named the session
	custom bool // a user named the session
	// summaries are the titles that wait for a line, by its uuid. leaf is the seq of the
	// newest line whose summary was read.
	summaries map[string]string
	leaf      int64
}

// index notes the title of a record at seq. leaf is the line that it summarizes; nil if
// the session does not have it.
func (t *titleState) index(f *facts, leaf *node, seq int64) {
	switch f.Type {
	case "custom-title", "ai-title":
		t.named = t.named || f.title() != ""
		t.custom = t.custom || f.CustomTitle != ""
	case "summary":
		if leaf != nil {
			t.leaf = max(t.leaf, leaf.seq)
		} else if f.LeafUUID != "" {
			t.summaries[f.LeafUUID] = f.Summary
		}
	}
	if _, ok := t.summaries[f.UUID]; ok && f.UUID != "" {
		t.leaf = seq
		delete(t.summaries, f.UUID)
	}
}

// titled returns the title that a line of conversation gives to its session: the summary
// with this line as its leaf. In a session without a title, the request of the user is
// the title.
func (s *session) titled(f *facts) string {
	if s.Erased {
		return ""
	}
	if title := s.titles.summaries[f.UUID]; f.UUID != "" && title != "" && !s.titles.named {
		return title
	}
	if s.titles.any {
		return ""
	}
	return f.opening().title()
}
