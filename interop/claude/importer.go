package claude

import (
	"context"
	"errors"
	"strings"
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
	order    []*session
	// current is the session of records that name none; nil before the first.
	current *session
	// held are records of sessions that have not begun, in order.
	held []heldRecord
	// at is the time of the newest record that had one.
	at time.Time
	// sides are the sessions of sub-agents without an id, and of lines that are
	// not a sub-agent's, by the uuids of the lines of this file.
	sides map[string]string
	// lastSide is the newest sub-agent of each session.
	lastSide map[string]string
	// claimed are the calls known to have started one.
	claimed map[string]bool
}

type heldRecord struct {
	rec     interop.Record
	facts   facts
	at      time.Time // zero while no record had one
	session string    // empty where the record names none
}

// of reports whether the record is one of s, or names no session and unnamed
// ones are to be its as well.
func (h *heldRecord) of(s *session, unnamed bool) bool {
	return h.session == s.ID || unnamed && h.session == ""
}

func newImporter(ctx context.Context, log *eventlog.Log) *importer {
	return &importer{
		ctx: ctx, log: log,
		sessions: map[string]*session{}, sides: map[string]string{}, lastSide: map[string]string{}, claimed: map[string]bool{},
	}
}

// record takes in the next record of the file. A *interop.RecordError refuses
// it; any other error stops the import.
func (im *importer) record(rec interop.Record) error {
	f, err := factsOf(rec.Value)
	if err != nil {
		return rec.Reject(err)
	}
	im.passes(f.time())
	id := im.sessionOf(&f)
	if id == "" && im.current != nil {
		return im.apply(im.current, rec, &f, im.at)
	}
	if id == "" {
		return im.hold(rec, id)
	}
	if err := event.CheckSessionID(id); err != nil {
		return rec.Reject(err)
	}
	s, err := im.open(id, &f)
	if err != nil {
		return err
	}
	begins := im.goesOn(s) || f.begins()
	if s.New() && !begins {
		return im.hold(rec, id)
	}
	return im.applyTo(s, rec, &f, begins)
}

// goesOn reports whether it makes no difference if a session could begin with the
// next record of s.
func (im *importer) goesOn(s *session) bool {
	return !s.New() && s == im.current && len(im.held) == 0
}

// passes takes in the time of the next record, if it has one. What was held
// before the first such gets its time.
func (im *importer) passes(at time.Time) {
	if at.IsZero() {
		return
	}
	if im.at.IsZero() {
		for i := range im.held {
			im.held[i].at = at
		}
	}
	im.at = at
}

// applyTo applies a record that names its session, and before it what was held
// for that. begins says that a session can begin with the record.
func (im *importer) applyTo(s *session, rec interop.Record, f *facts, begins bool) error {
	by, err := im.callOf(s, f)
	if err != nil {
		return err
	}
	if s.New() {
		if err := im.begin(s, rec, f, by); err != nil {
			return err
		}
	}
	if by.id != "" {
		if err := im.tellOfStart(s, &rec, f, by.id); err != nil {
			return err
		}
	}
	if err := im.release(s, begins); err != nil {
		return err
	}
	if begins && (!f.IsSidechain || im.current == nil || im.current.side) {
		im.current = s
	}
	return im.apply(s, rec, f, im.at)
}

// callOf finds the call that started the sub-agent whose session s is, with the
// first record of s. What the log says of a session that it holds stands.
func (im *importer) callOf(s *session, f *facts) (by task, err error) {
	if !s.side || len(s.seen) > 0 {
		return by, nil
	}
	by.id = s.call
	if s.New() {
		parent, err := im.open(f.SessionID, f)
		if err != nil {
			return by, err
		}
		by = parent.claim(s.ID, f.prompt(), im.claimed)
	}
	im.claimed[by.id] = true
	return by, nil
}

// hold keeps a record until its session begins.
func (im *importer) hold(rec interop.Record, session string) error {
	kept := rec.Clone()
	f, err := factsOf(kept.Value)
	if err != nil {
		return rec.Reject(err)
	}
	im.held = append(im.held, heldRecord{kept, f, im.at, session})
	return nil
}

// release applies the records held for s, and those that name no session if
// they are to be its as well.
func (im *importer) release(s *session, unnamed bool) error {
	held, rest := im.held, im.held[:0:0]
	for i, h := range held {
		if !h.of(s, unnamed) {
			rest = append(rest, h)
			continue
		}
		if err := im.apply(s, h.rec, &h.facts, h.at); err != nil {
			im.held = append(rest, held[i+1:]...)
			return err
		}
	}
	im.held = rest
	return nil
}

// open finds the session in this file or in the log.
func (im *importer) open(id string, f *facts) (*session, error) {
	if s := im.sessions[id]; s != nil {
		return s, nil
	}
	s, err := openSession(im.ctx, im.log, id)
	if err != nil {
		return nil, err
	}
	s.side = id != f.SessionID
	im.sessions[id] = s
	im.order = append(im.order, s)
	return s, nil
}

// sessionOf is the id of the session that a record belongs to; empty if it names
// none.
func (im *importer) sessionOf(f *facts) string {
	id := f.SessionID
	switch {
	case id == "":
		return ""
	case f.IsSidechain && f.AgentID != "":
		return id + ".agent-" + f.AgentID
	case f.IsSidechain:
		id = im.sideOf(f)
	}
	if f.UUID != "" {
		im.sides[f.UUID] = id
	}
	return id
}

// sideOf finds the sub-agent of a line by the line's parent. A line without a
// parent, or with one in the session itself, begins a new one; a line whose
// parent is missing is the newest one's.
func (im *importer) sideOf(f *facts) string {
	main := f.SessionID
	side, prefix := im.sides[f.ParentUUID], main+".side-"
	if strings.HasPrefix(side, prefix) {
		im.lastSide[main] = side
		return side
	}
	if f.UUID != "" && (f.ParentUUID == "" || side == main || im.lastSide[main] == "") {
		im.lastSide[main] = prefix + f.UUID
	}
	if im.lastSide[main] == "" {
		return main
	}
	return im.lastSide[main]
}

// flush appends what was added to every session.
func (im *importer) flush() (err error) {
	for _, s := range im.order {
		err = errors.Join(err, s.Flush(im.ctx))
	}
	return err
}

// finish fills in what is known at the end of the file.
func (im *importer) finish() {
	im.result.Skipped = len(im.held)
	for _, s := range im.order {
		im.result.Events += s.Written()
	}
}
