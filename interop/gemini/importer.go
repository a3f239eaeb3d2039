package gemini

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	result records.Tally

	// source is the file. named is the session id, or its first digits, in the name of the file;
	// empty if there is none.
	source interop.Source
	named  string

	s *session // nil before the header
	// at is the newest timestamp in the file so far.
	at time.Time
	// messages counts the messages of the file so far.
	messages int
}

// value imports a document or a line.
func (im *importer) value(rec *records.Record) error {
	if header, messages, ok := splitDocument(rec); ok {
		return im.document(header, messages)
	}
	return im.record(*rec)
}

// truncated imports the records before the point where a document is truncated.
func (im *importer) truncated(rec *records.Record) error {
	if header, messages, ok := splitDocument(rec); ok {
		return im.document(header, messages)
	}
	return nil
}

func (im *importer) document(header records.Record, messages []records.Record) error {
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

// record imports a header, message or change, or rejects it. An error stops the import.
func (im *importer) record(rec records.Record) error {
	im.result.Records++
	r, err := readRecord(rec)
	if err != nil {
		im.result.Reject(rec.Reject(err))
		return nil
	}
	if r.at.IsZero() {
		r.at = im.at
	}
	im.at = r.at
	if r.isMessage() {
		im.messages++
		if !sessions.Drawn(r.id) { // an id that is computed from the message could be guessed
			r.id = fmt.Sprintf("message-%d", im.messages)
		}
	}
	err = im.dispatch(&r)
	var refused *records.RecordError
	if errors.As(err, &refused) {
		im.result.Reject(refused)
		return nil
	}
	return err
}

// dispatch adds a record to its session, or holds it until the session begins.
func (im *importer) dispatch(r *record) error {
	switch {
	case r.isHeader() && (im.s == nil || im.s.ID != r.text("sessionId")):
		return im.startSession(r)
	case im.s == nil && im.named != "" && (r.isMessage() || r.change() != nil):
		if err := im.replaceHeader(r); err != nil {
			return err
		}
		return im.dispatch(r)
	case im.s == nil:
		im.result.Skipped++
		return nil
	case im.s.New() && !r.begins():
		im.s.held = append(im.s.held, r)
		return nil
	case im.s.New():
		if err := im.beginSession(r); err != nil {
			return err
		}
	}
	return im.apply(im.s, r)
}

// startSession makes the session of a header the current session.
func (im *importer) startSession(r *record) error {
	id := r.text("sessionId")
	if err := event.CheckSessionID(id); err != nil {
		return r.Reject(err)
	}
	if err := im.closeSession(); err != nil {
		return err
	}
	s, err := openSession(im.ctx, im.log, id)
	if err == nil && s.New() {
		s, err = im.openShort(s)
	}
	if err != nil {
		return err
	}
	im.s = s
	if r.isReplacement() {
		if s.New() {
			s.header = r
		}
		return nil
	}
	if done, err := im.addLateHeader(s, r); done || err != nil {
		return err
	}
	if m := s.FindOwn(s.ID, ownPart); m.Seq > 0 {
		im.result.Found(m.Withheld)
		return im.addSummary(s, r)
	}
	s.header = r
	return nil
}

// beginSession adds the start of a session with first message r, and its held records.
func (im *importer) beginSession(r *record) error {
	s := im.s
	question, err := r.question()
	if err != nil {
		return r.Located(err)
	}
	start := event.Session{
		Agent: agentName, Extra: s.header.Value,
		Source: event.SessionSource{Format: formatName, Path: s.header.Origin(0).Source, SessionID: s.ID},
	}
	if start.Title = titles.Of(s.header.text("summary")); start.Title == "" {
		start.Title = titles.Of(question)
	}
	s.titles[start.Title] = true
	if s.header.text("kind") == "subagent" || s.header.isReplacement() && head.IsUUID(im.named) {
		start.Parent.SessionID = filepath.Base(filepath.Dir(start.Source.Path))
	}
	isReplacement := s.header.isReplacement()
	if isReplacement {
		start.Extra = nil
	}
	e, err := s.header.Event(ownPart, start)
	if err == nil && isReplacement {
		err = e.SetMetadata(mark.NoHeader, true)
	}
	if err != nil {
		return s.header.Located(err)
	}
	s.trail.Grow(s.Add(sessions.Key{Own: s.ID, Part: ownPart}, s.header.at, e), e.Type)
	if !isReplacement {
		im.result.Imported++
	}
	held := s.held
	s.header, s.held = nil, nil
	for _, h := range held {
		if err := im.apply(s, h); err != nil {
			return err
		}
	}
	return nil
}

// closeSession flushes the current session before the next one.
func (im *importer) closeSession() error {
	if im.s == nil {
		return nil
	}
	err := im.flush()
	im.addCounts()
	im.s = nil
	return err
}

func (im *importer) flush() error {
	if im.s == nil {
		return nil
	}
	return im.s.Flush(im.ctx)
}

// finish completes the result at the end of the file.
func (im *importer) finish() {
	if im.s != nil {
		im.addCounts()
	}
}

func (im *importer) addCounts() {
	if im.s.Seq() > 0 { // the session has begun
		im.result.Touch(im.s.ID)
	}
	im.result.Events += im.s.Written()
	im.result.Skipped += len(im.s.held)
	if im.s.header != nil && !im.s.header.isReplacement() {
		im.result.Skipped++
	}
}
