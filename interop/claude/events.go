package claude

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The parts of a record's events, for their keys and origins.
const (
	ownPart     = iota // the event of the record itself
	startPart          // session_started, from the first record of the session
	movePart           // head_moved before the record
	compactPart        // compaction without a summary, or after /clear, before the record
	titlePart          // title of the session, after the record
	childPart          // child events after the record
)

// apply adds a record with timestamp at to its session, unless the session has it
// already.
func (im *importer) apply(s *session, rec records.Record, f *facts, at time.Time) error {
	im.result.Touch(s.ID)
	s.seen = true
	key := sessions.Key{Own: f.UUID, Unordered: true, Digest: rec.Digest} // lines without a session are held
	if m := s.Find(key, im.shape(s, f)); m.Seq > 0 {
		im.result.Found(m.Withheld)
		if m.Withheld {
			s.tree.withhold(f.UUID, f.ParentUUID, m.Seq)
		}
		s.matched, s.lastRead = true, max(s.lastRead, m.Seq)
		if m.Withheld || m.Seq < s.forkedAt {
			return nil
		}
		return im.lineFromProgress(&rec, f)
	}
	if done, err := im.leavesOut(s, f, at); done || err != nil {
		return err
	}
	if reason := s.conflict(f); reason != "" && !im.isCopy {
		s.Drop()
		return rec.Conflict(s.ID, reason)
	}
	if err := im.add(s, &rec, f, at); err != nil {
		return rec.Located(err)
	}
	if s.Full() && (s.matched || s.initialSeq == 0) {
		if err := s.FlushAsync(im.ctx); err != nil {
			return err
		}
	}
	if im.isCopy {
		return nil
	}
	return im.lineFromProgress(&rec, f)
}

// leavesOut looks for the owner of a new record, and leaves the record out if its original is
// redacted, or was removed.
func (im *importer) leavesOut(s *session, f *facts, at time.Time) (bool, error) {
	from, err := s.Elsewhere(im.ctx, sessions.Key{Own: f.UUID}, f.timeOr(at))
	im.isCopy = from.Session != ""
	if !from.Withheld || err != nil {
		return false, err
	}
	if s.LeaveOut(from) {
		im.result.Imported++
	} else {
		im.result.Found(true)
	}
	return true, nil
}

// mark marks an event of a record that another session owns: its cost counts there.
func (im *importer) mark(e *event.Event) error {
	if !im.isCopy {
		return nil
	}
	return e.SetMetadata("inherited", true)
}

// conflict returns the reason why a new record cannot be added to the session; empty if
// it can.
func (s *session) conflict(f *facts) (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched || s.LacksBeginning || s.Begun:
		return ""
	case !s.From(formatName):
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
func (im *importer) add(s *session, rec *records.Record, f *facts, at time.Time) error {
	if s.Begun && s.FindOwn(s.ID, startPart).Seq == 0 {
		if err := im.startFork(s, rec, f); err != nil {
			return err
		}
	}
	p, err := im.plan(s, rec, f)
	if err != nil {
		return err
	}
	put := func(part int, payload event.Payload) (int64, error) {
		e, err := rec.Event(part, payload)
		if err == nil {
			err = im.mark(&e)
		}
		if err != nil {
			return 0, err
		}
		return s.Add(sessions.Key{Part: part}, at, e), nil
	}
	to, ok := s.tree.move(p.treeLine)
	if f.Type == "last-prompt" {
		to, ok = s.tree.leaf(f.LeafUUID)
	}
	if ok {
		seq, err := put(movePart, event.HeadMove{To: to, Reason: "another branch of the transcript"})
		if err != nil {
			return err
		}
		s.indexMove(seq, to)
	}
	if s.clearsAll(f) {
		seq, err := put(compactPart, clearAll(s.Seq()))
		if err != nil {
			return err
		}
		s.pending = nil
		s.tree.extend(seq)
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
	if err == nil {
		err = im.mark(&e)
	}
	if err != nil {
		return err
	}
	title := s.titled(f)
	s.lastRead = s.Add(sessions.Key{Own: f.UUID, Digest: rec.Digest}, at, e)
	s.index(f, p.treeLine, p.message, &e, s.lastRead)
	if e.Type.Name() == event.SessionUpdated {
		s.titles.any = true
	}
	if title != "" {
		if err := im.addTitle(s, rec, at, title); err != nil {
			return err
		}
	}
	return im.addChildren(s, rec, f, at, p.message)
}

// addTitle adds the title of the session after a record.
func (im *importer) addTitle(s *session, rec *records.Record, at time.Time, title string) error {
	e, err := rec.Event(titlePart, event.Session{Updated: true, Title: title})
	if err != nil {
		return err
	}
	s.tree.extend(s.Join(sessions.Key{Part: titlePart}, at, e))
	s.titles.any = true
	return nil
}

// plan is the event that a record becomes.
type plan struct {
	treeLine line
	message  *event.Message // nil if the record is not a message
	// event makes the event, after the head has moved.
	event func() (event.Event, error)
}

func (im *importer) plan(s *session, rec *records.Record, f *facts) (plan, error) {
	if f.isMessage() {
		c := converter{ctx: im.ctx, log: im.log, calls: s.calls}
		m, ok, err := c.message(f)
		if err != nil {
			return plan{}, err
		}
		e, err := rec.EventOf(m, rec.Whole(ownPart))
		if ok && err == nil && m.Role == event.User && !f.opening().isRequest() {
			err = e.SetMetadata("context", true)
		}
		if ok && err == nil {
			im.result.Imported++
			return plan{f.treeLine(m.Role == event.Tool, m.Group), &m, func() (event.Event, error) {
				if s.pending == nil || !f.IsCompactSummary {
					return e, nil
				}
				return rec.EventOf(s.pending.compaction(s.Seq(), &m), rec.Whole(ownPart))
			}}, nil
		}
	}
	l := f.treeLine(false, "")
	if p := s.payload(f, rec.Value); p != nil {
		im.result.Imported++
		return plan{l, nil, func() (event.Event, error) { return rec.EventOf(p, rec.Whole(ownPart)) }}, nil
	}
	im.result.Raw++
	return plan{l, nil, func() (event.Event, error) {
		e, err := rec.Raw(f.rawType(), ownPart)
		if err == nil {
			err = f.markMeasured(&e)
		}
		return e, err
	}}, nil
}

// shape returns the shape of a record without an own id; nil if its id alone identifies
// it.
func (im *importer) shape(s *session, f *facts) func() sessions.Shape {
	if sessions.Drawn(f.UUID) {
		return nil
	}
	return func() sessions.Shape {
		c := converter{ctx: im.ctx, calls: s.calls}
		if m, ok, err := c.message(f); f.isMessage() && ok && err == nil {
			shape := sessions.ShapeOf(m, f.rawType())
			shape.Types = append(slices.Clip(shape.Types), event.CompactionTriggered)
			return shape
		}
		shape := sessions.ShapeOf(f.payload(nil), f.rawType())
		if f.Type == "summary" || f.Type == "ai-title" {
			shape.Types = append(slices.Clip(shape.Types), f.rawType())
		}
		return shape
	}
}

// rawType is the type of an event with the raw record.
func (f *facts) rawType() event.Type { return records.RawType(formatName, f.typeName()) }

// payload converts a record that is not a message; nil if the record stays raw.
func (f *facts) payload(record jsontext.Value) event.Payload {
	switch title := f.title(); {
	case title != "":
		return event.Session{Updated: true, Title: title, Extra: record}
	case f.isClearing():
		return f.clearing(record)
	}
	return nil
}

// payload converts a record that is not a message; nil if the record stays raw. The
// summary of another conversation, or of a session with a name, is no title. The title of
// a model does not replace the title of a user.
func (s *session) payload(f *facts, record jsontext.Value) event.Payload {
	switch {
	case f.Type == "summary" && (s.titles.named || !s.hasLine(f.LeafUUID)), f.Type == "ai-title" && s.titles.custom:
		return nil
	}
	return f.payload(record)
}

// hasLine reports whether a line is in the session, and not only in the session that it was
// forked from.
func (s *session) hasLine(uuid string) bool {
	return s.tree.known(uuid) && s.tree.node(uuid).seq > s.forkedAt
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
