package pi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
	"github.com/convlog/convlog/interop/internal/trail"
)

// startSeq is the seq of the first event of a session. The first record follows it.
const startSeq = 1

// session is a session of the file, with an index of its events.
type session struct {
	*sessions.Session
	// initialSeq is the seq of the newest event when the session was opened. ownEvents
	// counts the events that are not the parent's. matched is true after a record of
	// this file is found in the log.
	initialSeq int64
	ownEvents  int
	matched    bool
	// lineage are the ids of the session's ancestors and of the session, oldest first.
	lineage []string
	trail   *trail.Trail

	// header is the header of the file; nil if the log has it.
	header *heldRecord
	// parent is the id of the session that the file is a copy of. hasCopies is true
	// after a copied record.
	parent    string
	createdAt time.Time
	hasCopies bool
	// lacksHeader says that the first file of the session had no readable header.
	lacksHeader bool
	// held are the records before the session begins.
	held []*heldRecord
	// search compares the records with the parent; nil if there is nothing left to
	// compare.
	search *search
	// copies finds the records of a fork in its parent, as the import did that made the
	// fork; nil after the last copy. firstOwn is the seq of the fork's first own event.
	copies   *search
	firstOwn int64
	// name is the newest name of the session, prompt its first prompt: the first one of its
	// own, or else the first copied one.
	name, prompt   string
	isPromptCopied bool
	// isParentRemoved says that the parent was removed from the log.
	isParentRemoved bool

	// seqs are the seqs of the file's records, by index; 0 for the header.
	seqs  []int64
	nodes map[string]int64 // seqs by record id
	// editable are the records that an edit can change, by seq. edits are the edits, by seq.
	editable map[int64]editable
	edits    []edit
	// erased are the digests of the contents of redacted messages.
	erased  map[event.Digest]bool
	lastSeq int64 // seq of the previous record
}

// heldRecord is a record that waits for its session to begin.
type heldRecord struct {
	rec   records.Record
	facts facts
}

// openSession opens a session of the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{trail: trail.New(), nodes: map[string]int64{}, editable: map[int64]editable{}, erased: map[event.Digest]bool{}, lastSeq: startSeq}
	remember := func(e *event.Event) error { return s.restore(e, id) }
	opened, err := sessions.Open(ctx, log, id, remember)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	for record, seq := range s.Records {
		s.nodes[record[:shortID]] = seq
	}
	s.Program, s.ByContent, s.KnowsErased = formatName, true, true
	s.IsMessage = func(raw event.Type) bool { return strings.HasPrefix(string(raw), formatName+":message") }
	if !slices.Contains(s.lineage, id) {
		s.lineage = append(s.lineage, id)
	}
	return s, nil
}

// restore indexes an event of the log.
func (s *session) restore(e *event.Event, id string) error {
	if n := len(s.lineage); n == 0 || s.lineage[n-1] != e.SessionID {
		s.lineage = append(s.lineage, e.SessionID)
	}
	if e.SessionID == id {
		if s.ownEvents++; s.ownEvents == 1 && e.Type.Name() == event.SessionForked {
			s.firstOwn = e.Seq
		}
		if _, ok := e.MetadataValue(mark.NoHeader); ok {
			s.lacksHeader = true
		}
	}
	return s.trail.Remember(e)
}

// setHeader sets the header of the file, and the parent.
func (s *session) setHeader(rec records.Record, f *facts) {
	s.seqs = append(s.seqs, 0)
	s.parent, s.createdAt = parentOf(f), f.at
	if m := s.FindOwn(s.ID, headerPart); m.Seq > 0 {
		return
	}
	s.header = newHeldRecord(rec, f)
}

// newHeldRecord copies a record, since the caller reuses its bytes.
func newHeldRecord(rec records.Record, f *facts) *heldRecord {
	h := &heldRecord{rec: rec.Clone()}
	h.facts, _ = read(&h.rec) // read before without an error
	h.facts.at = f.at
	return h
}

// parentOf is the id of the session that a header names as its original. pi names the
// file.
func parentOf(header *facts) string {
	name := header.text("parentSession")
	if name == "" {
		name = header.text("branchedFrom")
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return idIn(strings.TrimSuffix(name, ".jsonl"))
}

// idIn is the session id in the name of a file without its extension; empty if there is none.
func idIn(name string) string {
	name = name[strings.LastIndexByte(name, '_')+1:]
	if event.CheckSessionID(name) != nil {
		return ""
	}
	return name
}

// isCopied reports whether a record is a copy from the parent: it is older than the
// header.
func (s *session) isCopied(f *facts) bool { return s.parent != "" && f.at.Before(s.createdAt) }

// observe takes the title and the first prompt from a record, unless it is withheld.
func (s *session) observe(f *facts, withheld bool) {
	if s.header == nil {
		return
	}
	s.hasCopies = s.hasCopies || s.isCopied(f)
	if withheld {
		return
	}
	if name := titles.Of(f.text("name")); f.kind == "session_info" && name != "" {
		s.name = name
	}
	if prompt := titles.Of(f.prompt()); prompt != "" && (s.prompt == "" || s.isPromptCopied && !s.isCopied(f)) {
		s.prompt, s.isPromptCopied = prompt, s.isCopied(f)
	}
}

// find finds the event of the record.
func (s *session) find(f *facts) sessions.Match { return s.Find(f.key(), f.shape) }

// indexRecord sets the seq of a record.
func (s *session) indexRecord(f *facts, seq int64) {
	if f.id != "" {
		s.nodes[f.id] = seq
	}
	s.seqs, s.lastSeq = append(s.seqs, seq), seq
}

// remember indexes a record that the log has.
func (s *session) remember(f *facts, m sessions.Match) {
	s.indexRecord(f, m.Seq)
	if m.Withheld {
		s.erase(&f.message)
	} else {
		s.note(f, m.Seq)
	}
}

// parentSeq is the seq that the record follows. If its parent is missing, the record
// follows the previous record.
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

// conflict returns the reason why a new record cannot be added to the session; empty if
// it can. A file holds its session from the start, so one of its records must be in the
// log.
func (s *session) conflict() (reason string) {
	switch {
	case s.initialSeq == 0 || s.matched || s.Records != nil: // resume wrote its first records
		return ""
	case !s.From(formatName):
		return "the session was not imported from pi"
	case s.ownEvents == 1 && len(s.lineage) > 1: // the fork has no records yet
		s.matched = true
		return ""
	}
	return "the session in the log begins with other records"
}
