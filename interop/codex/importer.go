package codex

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	result interop.Result

	header header
	s      *session // nil until it is known which it is, and where it begins
	// parent is the session that this one comes from, if the log has it.
	parent *parent
	// held are the records before the session begins, in order; seen counts
	// equal ones.
	held []interop.Record
	seen map[event.Digest]int
	// title is what the session is called when it begins.
	title string
	// forked: a session_forked was written. copies: the file begins with copies
	// of another session; own: it is past them.
	forked, copies, own bool
	// at is the time of the newest record that had one.
	at time.Time
}

// record takes in the next record of the file. A *interop.RecordError refuses
// it; any other error stops the import.
func (im *importer) record(rec interop.Record) error {
	l, err := readLine(&rec)
	if err != nil {
		return rec.Reject(err)
	}
	switch {
	case im.s != nil:
		return im.apply(l)
	case im.header.id == "":
		return im.first(l)
	case im.waits(l):
		im.hold(&rec)
		return nil
	}
	if err := im.begin(); err != nil {
		return err
	}
	return im.apply(l)
}

// first takes in a record before it is known which session it is, and finds out
// if the record tells. What came before such a record follows it.
func (im *importer) first(l *line) error {
	im.hold(l.rec)
	if l.kind != metaKind {
		return nil
	}
	h := headerOf(l)
	if err := event.CheckSessionID(h.id); err != nil {
		im.held = im.held[:len(im.held)-1]
		return l.rec.Reject(err)
	}
	last := len(im.held) - 1
	im.held = append([]interop.Record{im.held[last]}, im.held[:last]...)
	im.header, im.seen = h, map[event.Digest]int{}
	s, err := openSession(im.ctx, im.log, h.id)
	if err != nil {
		return err
	}
	if !s.found && h.parent() != "" {
		if im.parent, err = openParent(im.ctx, im.log, h.parent()); err != nil {
			return err
		}
	}
	if !s.found && last == 0 {
		return nil
	}
	if s.found {
		im.s = s
	}
	return im.begin()
}

// waits reports whether a record does not begin the session yet: it is a copy of
// what the parent has, or stands before the first prompt.
func (im *importer) waits(l *line) bool {
	if im.parent != nil && im.header.forkedFrom != "" {
		return im.copied(l)
	}
	return !im.opens(l)
}

// opens reports whether a session begins with the record: with a prompt, which
// it is called by, or with what the model did.
func (im *importer) opens(l *line) bool {
	if name := l.text("thread_name"); l.is("thread_name_updated") && name != "" {
		im.title = strings.TrimSpace(name)
	}
	if l.kind != itemKind {
		return false
	}
	if l.text("type") != "message" || l.text("role") == string(event.Assistant) {
		return true
	}
	var r parts.Reader
	said, err := r.Content(l.members.Peek("content"))
	m := event.Message{Role: event.Role(l.text("role")), Parts: said}
	if err != nil || !isPrompt(&m) {
		return false
	}
	im.title = cmp.Or(im.title, titleOf(&m))
	return true
}

// copied reports whether a record that comes before the session begins is a copy
// of the parent's, or tells whose copies follow.
func (im *importer) copied(l *line) bool {
	if l.kind == metaKind {
		return true
	}
	n := im.seen[l.digest]
	im.seen[l.digest]++
	return im.parent.take(l, n)
}

// hold keeps a record until the session begins.
func (im *importer) hold(rec *interop.Record) {
	im.held = append(im.held, rec.Clone())
}

// begin begins the session, and applies what was held for it.
func (im *importer) begin() error {
	if im.s == nil && im.parent != nil && im.parent.talked {
		made, err := im.parent.fork(im.ctx, im.log, &im.header)
		if err != nil {
			return err
		}
		im.forked = made
	}
	if im.s == nil {
		s, err := openSession(im.ctx, im.log, im.header.id)
		if err != nil {
			return err
		}
		im.s = s
	}
	held := im.held
	im.held = nil
	for i := range held {
		l, err := readLine(&held[i])
		if err == nil {
			err = im.apply(l)
		}
		if err != nil {
			im.held = held[i:]
			return err
		}
	}
	return nil
}

// apply adds a record to the session, unless the session has it already.
func (im *importer) apply(l *line) error {
	s := im.s
	im.result.Touch(s.ID)
	im.passes(l)
	n := s.occurrence(l.digest)
	key := interop.RecordKey(s.ID, l.digest, n, ownPart)
	if seq, ok := s.Find(key); ok {
		im.result.Present++
		s.passed = max(s.passed, seq)
		s.shared.parted = s.shared.parted || l.kind != metaKind
		return nil
	}
	if s.has(l, n) {
		im.result.Present++
		return nil
	}
	if reason := s.differs(); reason != "" {
		s.Drop()
		return l.rec.Conflict(s.ID, reason)
	}
	if err := im.add(l, n); err != nil {
		return l.rec.Located(err)
	}
	if s.Full() {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// passes takes in when a record was made, and whether copies begin or end.
func (im *importer) passes(l *line) {
	if !l.at.IsZero() {
		im.at = l.at
	}
	switch {
	case l.kind == metaKind:
		im.copies = im.copies || l.text("id") != im.header.id || im.header.forkedFrom != ""
	case l.kind == "turn_context" || l.is("task_started", "turn_started"):
		im.own = im.own || im.header.ownTurn(l.text("turn_id"), im.at)
	}
}

// copying reports whether the records are copies of another session's.
func (im *importer) copying() bool { return im.copies && !im.own }

// has reports whether the record is a copy of what the session shares with those
// that it was forked from.
func (s *session) has(l *line, n int) bool {
	if l.kind == metaKind {
		_, ok := s.shared.find(l, n)
		return ok
	}
	return s.shared.take(l, n)
}

// differs says why a record that the session does not have cannot be added to
// it, if so.
func (s *session) differs() string {
	switch {
	case s.found && !s.From(Name):
		return "the session was not imported from Codex"
	case s.found && s.passed < s.last:
		return "the record is not in the session, which goes on after what stands before it"
	}
	return ""
}

// flush appends what was added.
func (im *importer) flush() error {
	if im.s == nil {
		return nil
	}
	return im.s.Flush(im.ctx)
}

// finish fills in what is known at the end of the file.
func (im *importer) finish() {
	im.result.Skipped = len(im.held)
	if im.s != nil {
		im.result.Events = im.s.Written()
	}
	if im.forked {
		im.result.Events++
	}
}
