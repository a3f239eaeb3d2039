package codex

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// importer imports one file.
type importer struct {
	ctx context.Context
	// failures are the failed commands of the file so far.
	failures failures
	log      *eventlog.Log
	result   records.Tally

	header header
	// named is the id in the name of the file; empty if there is none. hasNoHeader says that
	// the file has no readable header, so that the session has this id.
	named       string
	hasNoHeader bool
	s           *session // nil until the session begins
	// parent is the parent session; nil if there is none, or the log lacks it.
	parent *parent
	// owners are the sessions that can own records of the file. isOwned says that one of them
	// owns the current record.
	owners             []*owner
	hasOwners, isOwned bool
	lacksBase          bool // the result says so
	// isParentRemoved says that the parent was removed from the log.
	isParentRemoved bool
	// held are the records before the session begins.
	held []records.Record
	// title is the title for session_started.
	title string
	// madeFork: this import made the fork. hasCopies: the file begins with copies from
	// another session. pastCopies: the records after the copies have begun.
	madeFork, hasCopies, pastCopies bool
	// at is the newest timestamp in the file so far.
	at time.Time
}

// record imports the next record of the file. A *records.RecordError rejects the record;
// any other error stops the import.
func (im *importer) record(rec records.Record) error {
	l, err := readLine(&rec)
	if err != nil {
		return rec.Reject(err)
	}
	switch {
	case im.s != nil:
		return im.apply(l)
	case im.header.id == "":
		return im.findHeader(l)
	case im.mustHold(l):
		im.hold(&rec)
		return nil
	}
	if err := im.begin(); err != nil {
		return err
	}
	return im.apply(l)
}

// findHeader holds a record before the header. The header names the session, and moves
// to the front of the held records.
func (im *importer) findHeader(l *line) error {
	if im.lacksHeader(l) {
		return im.replaceHeader(l)
	}
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
	im.held = append([]records.Record{im.held[last]}, im.held[:last]...)
	return im.start(h, last > 0)
}

// start opens the session of a header. The session begins now if the log has it, or if records
// come before the header.
func (im *importer) start(h header, isLate bool) error {
	im.header = h
	s, err := im.openSession()
	if err != nil {
		return err
	}
	if h.hasCopies() {
		if im.isParentRemoved, err = s.Removed(im.ctx, h.parent()); err != nil {
			return err
		}
	}
	if !s.existed && h.parent() != "" {
		if im.parent, err = openParent(im.ctx, im.log, &h); err != nil {
			return err
		}
	}
	if !s.existed && !isLate {
		return nil
	}
	if s.existed {
		im.s = s
	}
	return im.begin()
}

// openSession opens the session of the header.
func (im *importer) openSession() (*session, error) {
	s, err := openSession(im.ctx, im.log, im.header.id)
	if err != nil {
		return nil, err
	}
	s.ancestry.diverged = im.header.base.Session != ""
	s.LacksBeginning = s.LacksBeginning || im.isParentRemoved && !s.existed
	return s, nil
}

// mustHold reports whether the session does not begin with the record: the record is a
// copy from the parent, or comes before the first prompt.
func (im *importer) mustHold(l *line) bool {
	if im.parent != nil && im.header.hasCopies() {
		return im.isCopy(l)
	}
	return !im.beginsSession(l)
}

// beginsSession reports whether the session begins with the record: a prompt or an item
// of the model. A prompt or a thread name sets the title.
func (im *importer) beginsSession(l *line) bool {
	if name := l.text("thread_name"); l.isEvent("thread_name_updated") && name != "" {
		im.title = strings.TrimSpace(name)
	}
	if l.kind != itemKind {
		return false
	}
	if l.text("type") == agentMessage {
		im.title = cmp.Or(im.title, taskTitle(l))
	}
	if l.text("type") != "message" || l.text("role") == string(event.Assistant) {
		return true
	}
	var r parts.Reader
	content, err := r.Content(l.members.Peek("content"))
	m := event.Message{Role: event.Role(l.text("role")), Parts: content}
	if err != nil || !isPrompt(&m) {
		return false
	}
	im.title = cmp.Or(im.title, titleOf(&m))
	return true
}

// taskTitle is the title of a session that begins with the task from another agent.
func taskTitle(l *line) string {
	var r parts.Reader
	content, err := r.Content(l.members.Peek("content"))
	if err != nil {
		return ""
	}
	text := event.Message{Parts: content}.Text()
	if _, payload, ok := strings.Cut(text, "\nPayload:"); ok {
		text = payload
	}
	return cmp.Or(titles.Of(text), taskName(l.text("recipient")))
}

// isCopy reports whether a record before the session begins is a session_meta, or a copy
// from the parent.
func (im *importer) isCopy(l *line) bool {
	if l.kind == metaKind {
		return true
	}
	return im.parent.match(l, im.shape(l)).Seq > 0
}

// hold keeps a record until the session begins.
func (im *importer) hold(rec *records.Record) {
	im.held = append(im.held, rec.Clone())
}

// begin begins the session, and adds the held records.
func (im *importer) begin() error {
	if im.s == nil && im.parent != nil && im.parent.hasMessage {
		created, err := im.parent.fork(im.ctx, im.log, &im.header)
		if err != nil {
			return err
		}
		im.madeFork = created
	}
	if im.s == nil {
		s, err := im.openSession()
		if err != nil {
			return err
		}
		im.s = s
	}
	if err := errors.Join(im.findOwners(), im.checkBase()); err != nil {
		return err
	}
	held := im.held
	im.held = nil
	for i := range held {
		l, err := readLine(&held[i])
		switch {
		case err != nil:
		case im.isReplacement(l):
			err = im.applyReplacement(l)
		default:
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
	im.advance(l)
	im.failures.note(l)
	if s.LacksBeginning && im.inCopies() && l.kind != metaKind {
		im.leaveOut()
		return nil
	}
	withheld := im.findOwner(l)
	if m := s.copied(l, im.shape(l)); m.Seq > 0 {
		im.result.Found(m.Withheld)
		return nil
	}
	if m := s.Find(l.key(), im.shape(l)); m.Seq > 0 {
		im.result.Found(m.Withheld)
		s.lastRead = max(s.lastRead, m.Seq)
		s.ancestry.diverged = s.ancestry.diverged || l.kind != metaKind
		return nil
	}
	if withheld {
		im.result.Found(true)
		return nil
	}
	if s.lacksHeader && im.isHeader(l) {
		return im.addLateHeader(l)
	}
	if reason := s.conflict(); reason != "" {
		s.Drop()
		return l.rec.Conflict(s.ID, reason)
	}
	if err := im.convert(l); err != nil {
		return l.rec.Located(err)
	}
	if s.Full() {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// leaveOut leaves out a copy of a line of the parent, which was removed. If the parent is back,
// it has the line.
func (im *importer) leaveOut() {
	if im.isParentRemoved {
		im.s.LeaveOut(sessions.Copy{Session: im.header.parent(), Withheld: true, Removed: true})
		im.result.Imported++
	} else {
		im.result.Found(false)
	}
}

// advance updates the time, and notes where copies begin and end.
func (im *importer) advance(l *line) {
	if !l.at.IsZero() {
		im.at = l.at
	}
	switch {
	case l.kind == metaKind:
		im.hasCopies = im.hasCopies || l.text("id") != im.header.id || im.header.hasCopies()
	case l.kind == "turn_context" || l.isEvent("task_started", "turn_started"):
		im.pastCopies = im.pastCopies || im.header.ownTurn(l.text("turn_id"), im.at)
	}
}

// inCopies reports whether the current records are copies from another session.
func (im *importer) inCopies() bool { return im.hasCopies && !im.pastCopies }

// copied finds the event that the session shares with an ancestor, if the record is a copy
// of it.
func (s *session) copied(l *line, shape func() sessions.Shape) sessions.Match {
	if l.kind != metaKind {
		return s.ancestry.match(l, shape)
	}
	if l.text("id") == s.ID {
		return sessions.Match{}
	}
	m, _ := s.ancestry.find(l, 0, shape)
	return m
}

// conflict returns the reason why a new record cannot be added to the session; empty if
// it can.
func (s *session) conflict() string {
	switch {
	case s.existed && !s.From(formatName):
		return "the session was not imported from Codex"
	case s.existed && s.lastRead < s.last:
		return "the session has other records after the last record that the file shares with it"
	}
	return ""
}

// flush appends the queued events.
func (im *importer) flush() error {
	if im.s == nil {
		return nil
	}
	return im.s.Flush(im.ctx)
}

// finish completes the result at the end of the file.
func (im *importer) finish() {
	im.result.Skipped = len(im.held)
	if im.s != nil {
		im.result.Events = im.s.Written()
	}
	if im.madeFork {
		im.result.Events++
	}
}
