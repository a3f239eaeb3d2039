package pi

import (
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	result records.Tally

	sessions map[string]*session
	order    []string
	// named is the session id in the name of the file; empty if there is none.
	named string
	// current is the session of the newest header; nil before the first header.
	current *session
	// isCopy says that another session owns the current record.
	isCopy bool
	// at is the newest timestamp in the file so far.
	at time.Time
}

// record imports the next record of the file. A *records.RecordError rejects the record;
// any other error stops the import.
func (im *importer) record(rec records.Record) error {
	f, err := read(&rec)
	if err != nil {
		return rec.Reject(err)
	}
	if f.at.IsZero() {
		f.at = im.at
	}
	im.at = f.at
	switch {
	case f.kind == "session" && f.id != "" && (im.current == nil || im.current.ID != f.id):
		return im.header(rec, &f)
	case im.current == nil && im.named != "" && f.kind != "session":
		if err := im.replaceHeader(&rec, &f); err != nil {
			return err
		}
	case im.current == nil:
		im.result.Skipped++
		return nil
	}
	return im.entry(im.current, rec, &f)
}

// header makes the session of a header the current session.
func (im *importer) header(rec records.Record, f *facts) error {
	if err := event.CheckSessionID(f.id); err != nil {
		return rec.Reject(err)
	}
	if s := im.sessions[f.id]; s != nil {
		im.current = s
		return im.entry(s, rec, f)
	}
	s, err := openSession(im.ctx, im.log, f.id)
	if err != nil {
		return err
	}
	s.Beside = im.has
	s.setHeader(rec, f)
	if s.Begun { // the parent of its first record is in the part that the log wrote
		s.lastSeq = s.firstOwn
	}
	if err := im.addLateHeader(s, &rec, f); err != nil {
		return err
	}
	if s.parent != "" && s.parent != s.ID {
		if s.isParentRemoved, err = s.Removed(im.ctx, s.parent); err != nil {
			return err
		}
		s.LacksBeginning = s.LacksBeginning || s.isParentRemoved && s.New()
	}
	if s.New() && im.current == nil { // a file of pi has one header
		if err := im.startSearch(s); err != nil {
			return err
		}
	}
	if !s.New() {
		if err := im.startCopies(s); err != nil {
			return err
		}
	}
	im.result.Touch(s.ID)
	im.sessions[s.ID], im.current = s, s
	im.order = append(im.order, s.ID)
	return nil
}

// has reports whether the file has a header of a session.
func (im *importer) has(session string) bool { return im.sessions[session] != nil }

// entry adds a record to its session, or holds it until the session begins.
func (im *importer) entry(s *session, rec records.Record, f *facts) error {
	if s.LacksBeginning && s.isCopied(f) {
		im.leaveOut(s)
		return nil
	}
	if s.search != nil {
		if m := s.search.match(f); m.Seq > 0 {
			s.observe(f, m.Withheld)
			s.remember(f, m)
			return nil
		}
		var err error
		if s, err = im.endSearch(s); err != nil {
			return rec.Located(err)
		}
	}
	if s.header != nil {
		from, err := s.Elsewhere(im.ctx, f.key(), f.at)
		if err != nil {
			return err
		}
		s.observe(f, from.Withheld)
	}
	if !s.New() {
		return im.apply(s, rec, f)
	}
	if !f.beginsSession() {
		s.held = append(s.held, newHeldRecord(rec, f))
		return nil
	}
	if err := im.beginSession(s); err != nil {
		return rec.Located(err)
	}
	return im.apply(s, rec, f)
}

// leaveOut leaves out a copy of a record of the parent, which was removed. If the parent is
// back, it has the record.
func (im *importer) leaveOut(s *session) {
	s.hasCopies = true
	if s.isParentRemoved {
		s.LeaveOut(sessions.Copy{Session: s.parent, Withheld: true, Removed: true})
		im.result.Imported++
	} else {
		im.result.Found(false)
	}
}

// endSearch ends the search for copies. If the parent has some of the records, the
// session becomes a fork of it.
func (im *importer) endSearch(s *session) (*session, error) {
	if len(s.search.matches) == 0 {
		s.search = nil
		return s, nil
	}
	forked, err := im.fork(s)
	if err != nil {
		return nil, err
	}
	for _, m := range s.search.matches {
		im.result.Found(m.Withheld)
	}
	im.sessions[s.ID], im.current = forked, forked
	return forked, nil
}

// beginSession adds the start of a session, and its held records.
func (im *importer) beginSession(s *session) error {
	if err := im.addHeader(s); err != nil {
		return err
	}
	waiting := s.held
	s.held = nil
	for _, h := range waiting {
		if err := im.apply(s, h.rec, &h.facts); err != nil {
			return err
		}
	}
	return nil
}

// flush appends the queued events of every session.
func (im *importer) flush() (err error) {
	for _, id := range im.order {
		err = errors.Join(err, im.sessions[id].Flush(im.ctx))
	}
	return err
}

// finish completes the result at the end of the file.
func (im *importer) finish() {
	for _, s := range im.sessions {
		im.result.Events += s.Written()
		im.result.Skipped += s.heldCount()
	}
}

// heldCount is the number of held records. It includes the copies in a file that has
// nothing else.
func (s *session) heldCount() int {
	n := len(s.held)
	if s.header != nil && !s.header.facts.isReplacement() {
		n++
	}
	if s.search != nil {
		n += len(s.search.matches)
	}
	return n
}
