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
const start = 1

// session is a session that records are added to.
type session struct {
	*interop.Session
	// found is how many events the log held, own those of them that are not its
	// parent's; matched, that records of this file are among them.
	found   int64
	own     int
	matched bool
	// lineage are the sessions whose events it holds, itself last.
	lineage []string
	trail   *trail.Trail

	// header is that of the file, while the log does not have it.
	header *heldRecord
	// parent is the session that the file was made from, made is when; copy says
	// that records were copied along.
	parent string
	made   time.Time
	copy   bool
	// held are records before the session begins.
	held []*heldRecord
	// search looks for the records in the parent; nil if that is over.
	search *search
	// name is what the session was called, prompt what the user said first.
	name, prompt string

	// seqs are those of the records of the file, by index; 0 for the header.
	seqs  []int64
	nodes map[string]int64 // seqs, by the ids of records
	last  int64            // seq of the record before
	seen  map[event.Digest]int
}

// heldRecord is a record that waits for its session to begin.
type heldRecord struct {
	rec   interop.Record
	facts facts
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{trail: trail.New(), nodes: map[string]int64{}, seen: map[event.Digest]int{}, last: start}
	remember := func(e *event.Event) error { return s.remember(e, id) }
	opened, err := interop.OpenSession(ctx, log, id, remember)
	if err != nil {
		return nil, err
	}
	s.Session, s.found = opened, opened.Seq()
	if !slices.Contains(s.lineage, id) {
		s.lineage = append(s.lineage, id)
	}
	return s, nil
}

// remember takes in an event that the log holds.
func (s *session) remember(e *event.Event, id string) error {
	if n := len(s.lineage); n == 0 || s.lineage[n-1] != e.SessionID {
		s.lineage = append(s.lineage, e.SessionID)
	}
	if e.SessionID == id {
		s.own++
	}
	return s.trail.Remember(e)
}

// takeHeader takes in the header of a file.
func (s *session) takeHeader(rec interop.Record, f *facts) {
	s.seqs = append(s.seqs, 0)
	s.parent, s.made = parentOf(f), f.at
	if _, ok := s.Find(s.headerKey()); ok {
		return
	}
	s.header = held(rec, f)
}

// held keeps a record, whose bytes are about to be reused.
func held(rec interop.Record, f *facts) *heldRecord {
	h := &heldRecord{rec: rec.Clone()}
	h.facts, _ = read(&h.rec) // it was read before
	h.facts.at, h.facts.n = f.at, f.n
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
func (s *session) copied(f *facts) bool { return s.parent != "" && f.at.Before(s.made) }

// meet takes in what every record says, whatever becomes of it.
func (s *session) meet(f *facts) {
	f.n = s.seen[f.digest]
	s.seen[f.digest]++
	if s.header == nil {
		return
	}
	s.copy = s.copy || s.copied(f)
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
		if seq, ok = s.Find(interop.RecordKey(id, f.digest, f.n, ownPart)); ok {
			break
		}
	}
	return seq, ok
}

// place takes in that a record is the event at seq.
func (s *session) place(f *facts, seq int64) {
	if f.id != "" {
		s.nodes[f.id] = seq
	}
	s.seqs, s.last = append(s.seqs, seq), seq
}

// follows is the seq of the event that a record follows. Where its parent is
// missing that is the record before it.
func (s *session) follows(f *facts) int64 {
	if !f.linked {
		return s.last
	}
	if f.parent == "" {
		return start
	}
	if seq, ok := s.nodes[f.parent]; ok && f.parent != f.id {
		return seq
	}
	return s.last
}

// parts says why a record that the session does not have cannot be added to it,
// if so. A file holds its session from the start.
func (s *session) parts() (reason string) {
	switch {
	case s.found == 0 || s.matched:
		return ""
	case !s.From(Name):
		return "the session was not imported from pi"
	case s.own == 1 && len(s.lineage) > 1: // the fork was made, and no more
		s.matched = true
		return ""
	}
	return "the session begins otherwise"
}
