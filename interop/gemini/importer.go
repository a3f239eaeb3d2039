package gemini

import (
	"context"
	"errors"
	"path/filepath"
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

	s *session // nil before the header
	// at is the time of the newest record that had one.
	at time.Time
}

// value takes in a document, or a line.
func (im *importer) value(rec *interop.Record) error {
	if header, messages, ok := split(rec); ok {
		return im.document(header, messages)
	}
	return im.record(*rec)
}

// before takes in what stands before the place where a document is cut off.
func (im *importer) before(rec *interop.Record) error {
	if header, messages, ok := split(rec); ok {
		return im.document(header, messages)
	}
	return nil
}

func (im *importer) document(header interop.Record, messages []interop.Record) error {
	if err := im.record(header); err != nil {
		return err
	}
	for _, m := range messages {
		if err := im.record(m); err != nil {
			return err
		}
	}
	return nil
}

// record takes in a record. One that cannot be read is refused; an error stops the
// import.
func (im *importer) record(rec interop.Record) error {
	im.result.Records++
	r, err := read(rec)
	if err != nil {
		im.result.Reject(rec.Reject(err))
		return nil
	}
	if r.at.IsZero() {
		r.at = im.at
	}
	im.at = r.at
	err = im.take(&r)
	var refused *interop.RecordError
	if errors.As(err, &refused) {
		im.result.Reject(refused)
		return nil
	}
	return err
}

// take gives a record to its session.
func (im *importer) take(r *record) error {
	switch {
	case r.starts() && (im.s == nil || im.s.ID != r.text("sessionId")):
		return im.start(r)
	case im.s == nil:
		im.result.Skipped++
		return nil
	case im.s.New() && !r.says():
		im.s.held = append(im.s.held, r)
		return nil
	case im.s.New():
		if err := im.begin(r); err != nil {
			return err
		}
	}
	return im.apply(im.s, r)
}

// start makes the session of a header the current one.
func (im *importer) start(r *record) error {
	id := r.text("sessionId")
	if err := event.CheckSessionID(id); err != nil {
		return r.Reject(err)
	}
	if err := im.leave(); err != nil {
		return err
	}
	s, err := openSession(im.ctx, im.log, id)
	if err != nil {
		return err
	}
	im.s = s
	if _, ok := s.Find(s.headerKey()); ok {
		im.result.Present++
		return im.summary(s, r)
	}
	s.header = r
	return nil
}

func (s *session) headerKey() interop.Key { return interop.FixedKey(s.ID, "session_started") }

// begin adds the start of a session, whose first message is r, and what was held
// for it.
func (im *importer) begin(r *record) error {
	s := im.s
	c := converter{ctx: im.ctx, log: im.log}
	said, err := c.content(r.members.Peek("content"))
	if err != nil {
		return r.Located(err)
	}
	start := event.Session{
		Agent: "gemini-cli", Extra: s.header.Value,
		Source: event.SessionSource{Format: Name, Path: s.header.Origin(0).Source, SessionID: s.ID},
	}
	if start.Title = interop.Title(s.header.text("summary")); start.Title == "" && r.kind == "user" {
		start.Title = interop.Title(event.Message{Parts: said}.Text())
	}
	s.title = start.Title
	if s.header.text("kind") == "subagent" {
		start.Parent.SessionID = filepath.Base(filepath.Dir(start.Source.Path))
	}
	e, err := s.header.Event(ownPart, start)
	if err != nil {
		return s.header.Located(err)
	}
	s.trail.Grow(s.Add(s.headerKey(), s.header.at, e), e.Type)
	im.result.Imported++
	held := s.held
	s.header, s.held = nil, nil
	for _, h := range held {
		if err := im.apply(s, h); err != nil {
			return err
		}
	}
	return nil
}

// leave appends what was added to the current session, before another one.
func (im *importer) leave() error {
	if im.s == nil {
		return nil
	}
	err := im.flush()
	im.count()
	im.s = nil
	return err
}

func (im *importer) flush() error {
	if im.s == nil {
		return nil
	}
	return im.s.Flush(im.ctx)
}

// finish fills in what is known at the end of the file.
func (im *importer) finish() {
	if im.s != nil {
		im.count()
	}
}

func (im *importer) count() {
	if im.s.Seq() > 0 { // it has begun
		im.result.Touch(im.s.ID)
	}
	im.result.Events += im.s.Written()
	im.result.Skipped += len(im.s.held)
	if im.s.header != nil {
		im.result.Skipped++
	}
}
