package claude

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// The parts of a record's events, for their keys and origins.
const (
	ownPart     = iota // the event of the record itself
	startPart          // session_started, from the first record of the session
	movePart           // head_moved before the record
	compactPart        // compaction without a summary, before the record
	childPart          // child events after the record
)

// apply adds a record with timestamp at to its session, unless the session has it
// already.
func (im *importer) apply(s *session, rec interop.Record, f *facts, at time.Time) error {
	im.result.Touch(s.ID)
	n := s.occurrence(rec.Digest)
	key := interop.RecordKey(s.ID, rec.Digest, n, ownPart)
	if seq, ok := s.Find(key); ok {
		im.result.Present++
		s.matched, s.lastRead = true, max(s.lastRead, seq)
		return nil
	}
	if reason := s.conflict(f); reason != "" {
		s.Drop()
		return rec.Conflict(s.ID, reason)
	}
	if err := im.add(s, &rec, f, at, n); err != nil {
		return rec.Located(err)
	}
	if s.Full() && (s.matched || s.initialSeq == 0) {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// conflict returns the reason why a new record cannot be added to the session; empty if
// it can.
func (s *session) conflict(f *facts) (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched:
		return ""
	case !s.From(Name):
		return "the session was not imported from Claude Code"
	case s.tree.last == nil || !f.isMessage() && !f.isCompaction():
		return ""
	case s.tree.known(f.ParentUUID) || s.tree.known(f.LogicalParentUUID):
		s.matched = true
		return ""
	}
	return "the record is not in the session, and does not follow one of its records"
}

// add queues the event of the record, with a head_moved and a compaction before it and
// child events after it, where they are needed.
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
	if to, ok := s.tree.move(p.treeLine); ok {
		seq, err := put(movePart, event.HeadMove{To: to, Reason: "another branch of the transcript"})
		if err != nil {
			return err
		}
		s.indexMove(seq, to)
	}
	if p.message != nil && s.pending != nil && !f.IsCompactSummary {
		seq, err := put(compactPart, s.pending.compaction(s.Seq(), nil))
		if err != nil {
			return err
		}
		s.pending = nil
		s.tree.extend(seq)
	}
	e, err := p.event()
	if err != nil {
		return err
	}
	s.lastRead = s.Add(interop.RecordKey(s.ID, rec.Digest, n, ownPart), at, e)
	s.index(f, p.treeLine, p.message, &e, s.lastRead)
	return im.addChildren(s, rec, f, at, p.message)
}

// plan is the event that a record becomes.
type plan struct {
	treeLine line
	message  *event.Message // nil if the record is not a message
	// event makes the event, after the head has moved.
	event func() (event.Event, error)
}

func (im *importer) plan(s *session, rec *interop.Record, f *facts) (plan, error) {
	if f.isMessage() {
		c := converter{ctx: im.ctx, log: im.log, calls: s.calls}
		m, ok, err := c.message(f)
		if err != nil {
			return plan{}, err
		}
		e, err := rec.Event(ownPart, m)
		if ok && err == nil && m.Role == event.User && !f.opening().isRequest() {
			err = e.SetMetadata("context", true)
		}
		if ok && err == nil {
			im.result.Imported++
			return plan{f.treeLine(m.Role == event.Tool, m.Group), &m, func() (event.Event, error) {
				if s.pending == nil || !f.IsCompactSummary {
					return e, nil
				}
				return rec.Event(ownPart, s.pending.compaction(s.Seq(), &m))
			}}, nil
		}
	}
	l := f.treeLine(false, "")
	if p := f.payload(rec.Value); p != nil {
		im.result.Imported++
		return plan{l, nil, func() (event.Event, error) { return rec.Event(ownPart, p) }}, nil
	}
	im.result.Raw++
	return plan{l, nil, func() (event.Event, error) { return rec.Raw(interop.RawType(Name, f.typeName())) }}, nil
}

// payload converts a record that is not a message; nil if the record stays raw.
func (f *facts) payload(record jsontext.Value) event.Payload {
	switch title := f.title(); {
	case title != "":
		return event.Session{State: event.SessionStateUpdated, Title: title, Extra: record}
	case f.isClearing():
		return f.clearing(record)
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
