package claude

import (
	"cmp"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// begin adds the session_started of a session, from its first record.
func (im *importer) begin(s *session, rec interop.Record, f *facts, by task) error {
	start := event.Session{
		Title: im.titleOf(s, f), Agent: "claude-code", CWD: f.CWD,
		Source: event.SessionSource{
			Format: Name, Version: f.Version, Path: rec.Origin(0).Source, SessionID: f.SessionID,
		},
	}
	if s.side {
		start.Parent = event.SessionParent{SessionID: f.SessionID, Seq: by.seq, CallID: by.id}
	}
	e, err := rec.Event(startPart, start)
	if err != nil {
		return rec.Located(err)
	}
	s.tree.extend(s.Add(interop.Key{Part: startPart}, im.at, e))
	return nil
}

// titleOf returns the first title of a session: the newest title among its held records,
// or else the title of its prompt.
func (im *importer) titleOf(s *session, f *facts) string {
	known := map[string]string{}
	for i := range im.held {
		h := &im.held[i]
		if title := h.facts.title(); h.belongsTo(s, true) && strings.TrimSpace(title) != "" {
			known[h.facts.Type] = title
		}
	}
	return cmp.Or(known["custom-title"], known["ai-title"], known["summary"], f.opening().title())
}
