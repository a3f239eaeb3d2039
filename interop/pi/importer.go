package pi

import (
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	result interop.Result

	sessions map[string]*session
	order    []string
	// current is the session of the newest header; nil before the first.
	current *session
	// at is the time of the newest record that had one.
	at time.Time
}

// record takes in the next record of the file. A *interop.RecordError refuses
// it; any other error stops the import.
func (im *importer) record(rec interop.Record) error {
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
	case im.current == nil:
		im.result.Skipped++
		return nil
	}
	return im.entry(im.current, rec, &f)
}

// header makes the session of a header the current one.
func (im *importer) header(rec interop.Record, f *facts) error {
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
	s.takeHeader(rec, f)
	if s.New() && im.current == nil { // a file that pi made has one header
		if err := im.look(s); err != nil {
			return err
		}
	}
	if s.header == nil {
		im.result.Present++
	}
	im.result.Touch(s.ID)
	im.sessions[s.ID], im.current = s, s
	im.order = append(im.order, s.ID)
	return nil
}

// entry takes in a record of a session.
func (im *importer) entry(s *session, rec interop.Record, f *facts) error {
	s.meet(f)
	if s.search != nil {
		if s.search.take(f) {
			return nil
		}
		var err error
		if s, err = im.part(s); err != nil {
			return rec.Located(err)
		}
	}
	if !s.New() {
		return im.apply(s, rec, f)
	}
	if !f.begins() {
		s.held = append(s.held, held(rec, f))
		return nil
	}
	if err := im.begin(s); err != nil {
		return rec.Located(err)
	}
	return im.apply(s, rec, f)
}

// part ends the search: the session parts from its parent here.
func (im *importer) part(s *session) (*session, error) {
	if len(s.search.found) == 0 {
		s.search = nil
		return s, nil
	}
	forked, err := im.fork(s)
	if err != nil {
		return nil, err
	}
	im.result.Present += len(s.search.found)
	im.sessions[s.ID], im.current = forked, forked
	return forked, nil
}

// begin adds the start of a session, and what was held for it.
func (im *importer) begin(s *session) error {
	if err := im.open(s); err != nil {
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

// flush appends what was added to every session.
func (im *importer) flush() (err error) {
	for _, id := range im.order {
		err = errors.Join(err, im.sessions[id].Flush(im.ctx))
	}
	return err
}

// finish fills in what is known at the end of the file.
func (im *importer) finish() {
	for _, s := range im.sessions {
		im.result.Events += s.Written()
		im.result.Skipped += s.waiting()
	}
}

// waiting is how many records are held for the session, or are its parent's in a
// copy that has none of its own.
func (s *session) waiting() int {
	n := len(s.held)
	if s.header != nil {
		n++
	}
	if s.search != nil {
		n += len(s.search.found)
	}
	return n
}
