package claude

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	src    interop.Source
	result records.Tally

	sessions map[string]*session
	order    []*session
	// current is the session of records without a session id; nil before the first
	// session.
	current *session
	// held are the records of sessions that have not begun, in file order.
	held []heldRecord
	// at is the newest timestamp in the file so far.
	at time.Time
	// sides maps the uuid of each line of a sub-agent without an id to the session of the line.
	// mains has the lines of main sessions: eight bytes of the ID of session and uuid. A wrong
	// match would only begin a sub-agent anew.
	sides map[string]string
	mains map[[8]byte]bool
	// lastSide is the newest sub-agent without an id, by session.
	lastSide map[string]string
	// claimedCalls are the calls whose sub-agent is known.
	claimedCalls map[string]bool
	// agentFiles says which sub-agents have a file of their own.
	agentFiles map[string]bool
	// isCopy says that another session owns the current record.
	isCopy bool
}

type heldRecord struct {
	rec     records.Record
	facts   facts
	at      time.Time // zero if no record before it has a timestamp
	session string    // empty if the record has no session id
}

// belongsTo reports whether the record belongs to s. If unnamed is true, so do records
// without a session id.
func (h *heldRecord) belongsTo(s *session, unnamed bool) bool {
	return h.session == s.ID || unnamed && h.session == ""
}

func newImporter(ctx context.Context, log *eventlog.Log, src interop.Source) *importer {
	return &importer{
		ctx: importrun.WithShared(ctx), log: log, src: src,
		sessions: map[string]*session{}, sides: map[string]string{}, mains: map[[8]byte]bool{}, lastSide: map[string]string{}, claimedCalls: map[string]bool{}, agentFiles: map[string]bool{},
	}
}

// record imports the next record of the file. A *records.RecordError rejects the record;
// any other error stops the import.
func (im *importer) record(rec records.Record) error {
	f, err := factsOf(rec.Value)
	if err != nil {
		return rec.Reject(err)
	}
	im.advanceTime(f.time())
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
	begins := im.continues(s) || f.beginsSession()
	if s.New() && !begins {
		return im.hold(rec, id)
	}
	return im.applyTo(s, rec, &f, begins)
}

// continues reports whether s has begun, is the current session, and no records are
// held. Then it does not matter whether a session could begin with the next record.
func (im *importer) continues(s *session) bool {
	return !s.New() && s == im.current && len(im.held) == 0
}

// advanceTime sets the time of the next record, if it has one. Records held before the
// first timestamp get it too.
func (im *importer) advanceTime(at time.Time) {
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

// applyTo adds a record to its session, after the records held for the session. begins
// is true if a session can begin with the record.
func (im *importer) applyTo(s *session, rec records.Record, f *facts, begins bool) error {
	if s.New() {
		forked, err := im.fork(s, &rec, f)
		if err != nil {
			return err
		}
		if forked != nil {
			s = forked
		} else if done, err := im.leavesOut(s, f, im.at); done || err != nil {
			return err
		}
	}
	by, err := im.startingCall(s, f)
	if err != nil {
		return err
	}
	if s.New() {
		if err := im.begin(s, rec, f, by); err != nil {
			return err
		}
	}
	if by.id != "" {
		if err := im.addChildStart(s, &rec, f, by.id); err != nil {
			return err
		}
	}
	if err := im.applyHeld(s, begins); err != nil {
		return err
	}
	if begins && (!f.IsSidechain || im.current == nil || im.current.side) {
		im.current = s
	}
	return im.apply(s, rec, f, im.at)
}

// startingCall finds the call that started the sub-agent of session s, when the first
// record of s arrives. If the log has s, the call is the one in its session_started.
func (im *importer) startingCall(s *session, f *facts) (by task, err error) {
	if !s.side || s.seen {
		return by, nil
	}
	by.id = s.call
	if s.New() {
		parent, err := im.open(f.SessionID, f)
		if err != nil {
			return by, err
		}
		by = parent.claim(s.ID, f.prompt(), im.claimedCalls)
	}
	im.claimedCalls[by.id] = true
	return by, nil
}

// hold keeps a record until its session begins.
func (im *importer) hold(rec records.Record, session string) error {
	clone := rec.Clone()
	f, err := factsOf(clone.Value)
	if err != nil {
		return rec.Reject(err)
	}
	im.held = append(im.held, heldRecord{clone, f, im.at, session})
	return nil
}

// applyHeld adds the records held for s. If unnamed is true, it adds the held records
// without a session id too.
func (im *importer) applyHeld(s *session, unnamed bool) error {
	held, rest := im.held, im.held[:0:0]
	for i, h := range held {
		if !h.belongsTo(s, unnamed) {
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

// has reports whether the file has lines of a session.
func (im *importer) has(session string) bool { return im.sessions[session] != nil }

// open returns the session from this file, from the log, or a new one.
func (im *importer) open(id string, f *facts) (*session, error) {
	if s := im.sessions[id]; s != nil {
		return s, nil
	}
	s, err := openSession(im.ctx, im.log, id)
	if err != nil {
		return nil, err
	}
	s.side, s.Beside = id != f.SessionID, im.has
	im.sessions[id] = s
	im.order = append(im.order, s)
	return s, nil
}

// sessionOf returns the id of the session that a record belongs to; empty if the record
// has no session id.
func (im *importer) sessionOf(f *facts) string {
	id := f.SessionID
	switch {
	case id == "":
		return ""
	case f.IsSidechain && f.AgentID != "":
		return id + ".agent-" + f.AgentID
	case f.IsSidechain:
		id = im.sidechainOf(f)
	}
	switch {
	case f.UUID == "":
	case id == f.SessionID:
		im.mains[mainLine(id, f.UUID)] = true
	default:
		im.sides[f.UUID] = id
	}
	return id
}

// mainLine identifies a line of a main session in mains.
func mainLine(session, uuid string) [8]byte {
	id := records.IDOf(session + "\x00" + uuid)
	return [8]byte(id[:])
}

// sidechainOf finds the sub-agent of a line without an agent id, by the parent of the
// line. A line without a parent, or with a parent in the main session, begins a new
// sub-agent. If the parent is missing, the line belongs to the newest sub-agent.
func (im *importer) sidechainOf(f *facts) string {
	main := f.SessionID
	side, prefix := im.sides[f.ParentUUID], main+".side-"
	if strings.HasPrefix(side, prefix) {
		im.lastSide[main] = side
		return side
	}
	if f.UUID != "" && (f.ParentUUID == "" || im.mains[mainLine(main, f.ParentUUID)] || im.lastSide[main] == "") {
		im.lastSide[main] = prefix + f.UUID
	}
	if im.lastSide[main] == "" {
		return main
	}
	return im.lastSide[main]
}

// flush appends the queued events of every session.
func (im *importer) flush() (err error) {
	for _, s := range im.order {
		err = errors.Join(err, s.Flush(im.ctx))
	}
	return err
}

// finish completes the result at the end of the file.
func (im *importer) finish() {
	im.result.Skipped = len(im.held)
	for _, s := range im.order {
		im.result.Events += s.Written()
	}
}
