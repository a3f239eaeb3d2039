package pi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/trail"
)

// start is the seq of the first event of a session, which the first record
// follows.
const startSeq = 1

// session is a session that records are added to.
type session struct {
	*interop.Session
	// found is how many events the log held, own those of them that are not its
	// parent's; matched, that records of this file are among them.
	initialSeq int64
	ownEvents  int
	matched    bool
	// lineage are the sessions whose events it holds, itself last.
	lineage []string
	trail   *trail.Trail

	// header is that of the file, while the log does not have it.
	header *heldRecord
	// parent is the session that the file was made from, made is when; copy says
	// that records were copied along.
	parent    string
	createdAt time.Time
	hasCopies bool
	// held are records before the session begins.
	held []*heldRecord
	// search looks for the records in the parent; nil if that is over.
	search *search
	// name is what the session was called, prompt what the user said first.
	name, prompt string

	// seqs are those of the records of the file, by index; 0 for the header.
	seqs        []int64
	nodes       map[string]int64 // seqs, by the ids of records
	lastSeq     int64            // seq of the record before
	occurrences map[event.Digest]int
}

// heldRecord is a record that waits for its session to begin.
type heldRecord struct {
	rec   interop.Record
	facts facts
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{trail: trail.New(), nodes: map[string]int64{}, occurrences: map[event.Digest]int{}, lastSeq: startSeq}
	remember := func(e *event.Event) error { return s.restore(e, id) }
	opened, err := interop.OpenSession(ctx, log, id, remember)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	if !slices.Contains(s.lineage, id) {
		s.lineage = append(s.lineage, id)
	}
	return s, nil
}

// remember takes in an event that the log holds.
func (s *session) restore(e *event.Event, id string) error {
	if n := len(s.lineage); n == 0 || s.lineage[n-1] != e.SessionID {
		s.lineage = append(s.lineage, e.SessionID)
	}
	if e.SessionID == id {
		s.ownEvents++
	}
	return s.trail.Remember(e)
}

// takeHeader takes in the header of a file.
func (s *session) setHeader(rec interop.Record, f *facts) {
	s.seqs = append(s.seqs, 0)
	s.parent, s.createdAt = parentOf(f), f.at
	if _, ok := s.Find(s.headerKey()); ok {
		return
	}
	s.header = newHeldRecord(rec, f)
}

// held keeps a record, whose bytes are about to be reused.
func newHeldRecord(rec interop.Record, f *facts) *heldRecord {
	h := &heldRecord{rec: rec.Kept()}
	h.facts, _ = read(&h.rec) // it was read before
	h.facts.at, h.facts.occurrence = f.at, f.occurrence
	return h
}

func (s *session) headerKey() interop.Key { return interop.FixedKey(s.ID, "session_started") }

// parentOf is the id of the session that a header says the session is a copy of.
// pi names the file.
func parentOf(header *facts) string {
	name := header.text("parentSession")
	if name == "" {
		name = header.text("branchedFrom")
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSuffix(name, ".jsonl")
	name = name[strings.LastIndexByte(name, '_')+1:]
	if event.CheckSessionID(name) != nil {
		return ""
	}
	return name
}

// copied reports whether a record was copied from the parent: it is older than
// the file.
func (s *session) isCopied(f *facts) bool { return s.parent != "" && f.at.Before(s.createdAt) }

// meet takes in what every record says, whatever becomes of it.
func (s *session) observe(f *facts) {
	f.occurrence = s.occurrences[f.digest]
	s.occurrences[f.digest]++
	if s.header == nil {
		return
	}
	s.hasCopies = s.hasCopies || s.isCopied(f)
	if name := interop.Title(f.text("name")); f.kind == "session_info" && name != "" {
		s.name = name
	}
	if s.prompt == "" {
		s.prompt = interop.Title(f.prompt())
	}
}

// find gives the seq of the event made of a record, if the session has it.
func (s *session) find(f *facts) (seq int64, ok bool) {
	for _, id := range s.lineage {
		if seq, ok = s.Find(interop.RecordKey(id, f.digest, f.occurrence, ownPart)); ok {
			break
		}
	}
	return seq, ok
}

// place takes in that a record is the event at seq.
func (s *session) indexRecord(f *facts, seq int64) {
	if f.id != "" {
		s.nodes[f.id] = seq
	}
	s.seqs, s.lastSeq = append(s.seqs, seq), seq
}

// follows is the seq of the event that a record follows. Where its parent is
// missing that is the record before it.
func (s *session) parentSeq(f *facts) int64 {
	if !f.hasParent {
		return s.lastSeq
	}
	if f.parent == "" {
		return startSeq
	}
	if seq, ok := s.nodes[f.parent]; ok && f.parent != f.id {
		return seq
	}
	return s.lastSeq
}

// parts says why a record that the session does not have cannot be added to it,
// if so. A file holds its session from the start.
func (s *session) conflict() (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched:
		return ""
	case !s.From(Name):
		return "the session was not imported from pi"
	case s.ownEvents == 1 && len(s.lineage) > 1: // the fork was made, and no more
		s.matched = true
		return ""
	}
	return "the session begins otherwise"
}
