package claude

import (
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// fork makes a new session a fork, if the file begins with the lines of another session. f
// is the line with which the session begins. fork returns nil if the session is no fork.
func (im *importer) fork(s *session, rec *records.Record, f *facts) (*session, error) {
	first := f
	for i := range im.held {
		if h := &im.held[i]; h.session == s.ID && h.facts.UUID != "" {
			first = &h.facts
			break
		}
	}
	from, err := s.Elsewhere(im.ctx, sessions.Key{Own: first.UUID}, first.time())
	if from.Session == "" || err != nil {
		return nil, err
	}
	made, err := s.Fork(im.ctx, im.linesOf(s.ID), fork.Options{
		Reason: "a copy by Claude Code", Metadata: map[string]any{records.OriginKey: rec.Origin(startPart)},
	})
	if !made || err != nil {
		return nil, err
	}
	im.result.Events++
	forked, err := openSession(im.ctx, im.log, s.ID)
	if err != nil {
		return nil, err
	}
	forked.side, forked.Beside = s.side, im.has
	im.sessions[s.ID] = forked
	for i := range im.order {
		if im.order[i] == s {
			im.order[i] = forked
		}
	}
	return forked, im.startFork(forked, rec, f)
}

// startFork adds the source and the settings of a fork, before its first line.
func (im *importer) startFork(s *session, rec *records.Record, f *facts) error {
	e, err := rec.Event(startPart, event.Session{Updated: true, Agent: agentName, CWD: f.CWD, Source: sourceOf(rec, f)})
	if err != nil {
		return rec.Located(err)
	}
	s.tree.extend(s.Add(sessions.Key{Own: s.ID, Part: startPart}, im.at, e))
	return nil
}

// linesOf yields the lines with uuids of a session in the file. It yields no line of a
// sub-agent without an id.
func (im *importer) linesOf(session string) iter.Seq[sessions.FileRecord] {
	return func(yield func(sessions.FileRecord) bool) {
		for rec, err := range records.Records(im.src) {
			if err != nil {
				return
			}
			f, err := factsOf(rec.Value)
			if err != nil || f.UUID == "" || f.session() != session {
				continue
			}
			if !yield(sessions.FileRecord{Own: f.UUID, At: f.time()}) {
				return
			}
		}
	}
}

// session is the session of a line, unless the line is of a sub-agent without an id.
func (f *facts) session() string {
	switch {
	case !f.IsSidechain:
		return f.SessionID
	case f.AgentID != "":
		return f.SessionID + ".agent-" + f.AgentID
	}
	return ""
}
