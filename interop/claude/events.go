package claude

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// The parts that a record's events have in their keys and origins.
const (
	ownPart     = iota // the record's own event
	startPart          // session_started, made of the record that the session begins with
	movePart           // head_moved before the record's own event
	compactPart        // a compaction without a summary, before the record's own event
	childPart          // what the record says of sub-agents, and after it
)

// apply adds a record, made at at, to its session, unless the session has it already.
func (im *importer) apply(s *session, rec interop.Record, f *facts, at time.Time) error {
	im.result.Touch(s.ID)
	n := s.occurrence(rec.Digest)
	key := interop.RecordKey(s.ID, rec.Digest, n, ownPart)
	if seq, ok := s.Find(key); ok {
		im.result.Present++
		s.matched, s.passed = true, max(s.passed, seq)
		return nil
	}
	if reason := s.parts(f); reason != "" {
		s.Drop()
		return rec.Conflict(s.ID, reason)
	}
	if err := im.add(s, &rec, f, at, n); err != nil {
		return rec.Located(err)
	}
	if s.Full() && (s.matched || s.found == 0) {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// parts says why a record that the session does not have cannot be added to
// it, if so.
func (s *session) parts(f *facts) (reason string) {
	switch {
	case s.found == 0 || s.matched:
		return ""
	case !s.From(Name):
		return "the session was not imported from Claude Code"
	case s.tree.last == nil || !f.says() && !f.compacts():
		return ""
	case s.tree.known(f.ParentUUID) || s.tree.known(f.LogicalParentUUID):
		s.matched = true
		return ""
	}
	return "the record neither is in the session nor follows one that is"
}

// add adds the record's own event, before it what moves the head there, and
// behind it what the record says of sub-agents.
func (im *importer) add(s *session, rec *interop.Record, f *facts, at time.Time, n int) error {
	p, err := im.plan(s, rec, f)
	if err != nil {
		return err
	}
	put := func(part int, payload event.Payload) (int64, error) {
		e, err := rec.Event(part, payload)
		if err != nil {
			return 0, err
		}
		return s.Add(interop.RecordKey(s.ID, rec.Digest, n, part), at, e), nil
	}
	if to, ok := s.tree.move(p.line); ok {
		seq, err := put(movePart, event.HeadMove{To: to, Reason: "another branch of the transcript"})
		if err != nil {
			return err
		}
		s.moved(seq, to)
	}
	if p.message != nil && s.owed != nil && !f.IsCompactSummary {
		seq, err := put(compactPart, s.owed.compaction(s.Seq(), nil))
		if err != nil {
			return err
		}
		s.owed = nil
		s.tree.grow(seq)
	}
	e, err := p.event()
	if err != nil {
		return err
	}
	s.passed = s.Add(interop.RecordKey(s.ID, rec.Digest, n, ownPart), at, e)
	s.took(f, p.line, p.message, &e, s.passed)
	return im.tellOfChildren(s, rec, f, at, p.message)
}

// plan is what becomes of a record.
type plan struct {
	line    line
	message *event.Message // nil if the record is none
	// event makes the event, once the head is where it must be.
	event func() (event.Event, error)
}

func (im *importer) plan(s *session, rec *interop.Record, f *facts) (plan, error) {
	if f.says() {
		c := converter{ctx: im.ctx, log: im.log, calls: s.calls}
		m, ok, err := c.message(f)
		if err != nil {
			return plan{}, err
		}
		e, err := rec.Event(ownPart, m)
		if ok && err == nil && m.Role == event.User && !f.opening().asks() {
			err = e.SetMetadata("context", true)
		}
		if ok && err == nil {
			im.result.Imported++
			return plan{f.line(m.Role == event.Tool, m.Group), &m, func() (event.Event, error) {
				if s.owed == nil || !f.IsCompactSummary {
					return e, nil
				}
				return rec.Event(ownPart, s.owed.compaction(s.Seq(), &m))
			}}, nil
		}
	}
	l := f.line(false, "")
	if p := f.payload(rec.Value); p != nil {
		im.result.Imported++
		return plan{l, nil, func() (event.Event, error) { return rec.Event(ownPart, p) }}, nil
	}
	im.result.Raw++
	return plan{l, nil, func() (event.Event, error) { return rec.Raw(interop.RawType(Name, f.kindName())) }}, nil
}

// payload is what becomes of a record that is no message; nil if it is kept raw.
func (f *facts) payload(record jsontext.Value) event.Payload {
	switch title := f.title(); {
	case title != "":
		return event.Session{State: event.SessionStateUpdated, Title: title, Extra: record}
	case f.clears():
		return f.cleared(record)
	}
	return nil
}

func (f *facts) title() string {
	switch f.Type {
	case "summary":
		return f.Summary
	case "custom-title":
		return f.CustomTitle
	case "ai-title":
		return f.AITitle
	}
	return ""
}

// begin adds the start of a session, made of the record that it begins with.
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
	s.tree.grow(s.Add(interop.FixedKey(s.ID, "session_started"), im.at, e))
	return nil
}
