package pi

import (
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
)

// The parts that a record's events have in their keys and origins.
const (
	ownPart  = iota // the record's own event
	movePart        // head_moved before it
	forkPart        // session_forked, made of the header
)

// apply adds a record to its session, unless the session has it already.
func (im *importer) apply(s *session, rec interop.Record, f *facts) error {
	if seq, ok := s.find(f); ok {
		im.result.Present++
		s.matched = true
		s.place(f, seq)
		return nil
	}
	if reason := s.parts(); reason != "" {
		s.Drop()
		return rec.Conflict(s.ID, reason)
	}
	if err := im.open(s); err != nil {
		return rec.Located(err)
	}
	if err := im.add(s, &rec, f); err != nil {
		return rec.Located(err)
	}
	if s.Full() {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// open adds what the header says, if the log does not have it: a session_started,
// or a session_updated in a fork.
func (im *importer) open(s *session) error {
	h := s.header
	if h == nil {
		return nil
	}
	said := event.Session{
		State: event.SessionStateUpdated, Title: s.name, Agent: Name, CWD: h.facts.text("cwd"), Extra: h.rec.Value,
		Source: event.SessionSource{Format: Name, Version: version(&h.facts), Path: h.rec.Origin(0).Source, SessionID: s.ID},
	}
	if said.Title == "" {
		said.Title = s.prompt
	}
	if s.New() {
		said.State = event.SessionStateStarted
	}
	if s.New() && !s.copy {
		said.Parent.SessionID = s.parent
	}
	e, err := h.rec.Event(ownPart, said)
	if err == nil && s.New() && s.copy {
		err = e.SetMetadata("copy_of", fork.CopyOrigin{Session: s.parent})
	}
	if err != nil {
		return err
	}
	s.trail.Grow(s.Add(s.headerKey(), h.facts.at, e), e.Type)
	s.header = nil
	im.result.Imported++
	return nil
}

// version is that of the format. Version 1 does not say.
func version(header *facts) string {
	v := header.value("version")
	if v.Kind() != '0' {
		return "1"
	}
	return string(v)
}

// add adds the record's own event, and before it what moves the head there.
func (im *importer) add(s *session, rec *interop.Record, f *facts) error {
	p, cost, err := im.payload(f)
	if err != nil {
		return err
	}
	if to := s.follows(f); s.trail.Leaves(to) {
		if err := im.move(s, rec, f, to); err != nil {
			return err
		}
	}
	if f.kind == "compaction" {
		p = s.compaction(f)
	}
	e, err := im.event(rec, f, p)
	if err != nil {
		return err
	}
	e.Cost = cost
	if s.copied(f) {
		if err := e.SetMetadata("inherited", true); err != nil {
			return err
		}
	}
	seq := s.Add(interop.RecordKey(s.ID, f.digest, f.n, ownPart), f.at, e)
	s.trail.Grow(seq, e.Type)
	s.place(f, seq)
	return nil
}

// move leads the head to where the record goes on from.
func (im *importer) move(s *session, rec *interop.Record, f *facts, to int64) error {
	e, err := rec.Event(movePart, event.HeadMove{To: to, Reason: "another branch of the session"})
	if err != nil {
		return err
	}
	s.trail.Moved(s.Add(interop.RecordKey(s.ID, f.digest, f.n, movePart), f.at, e), to)
	return nil
}

// event makes the record's own event. Without a payload, or where the log does
// not take it, that keeps the record as it is.
func (im *importer) event(rec *interop.Record, f *facts, p event.Payload) (event.Event, error) {
	if p != nil {
		e, err := rec.Event(ownPart, p)
		if err == nil || !errors.Is(err, event.ErrInvalid) {
			im.result.Imported++
			return e, err
		}
	}
	im.result.Raw++
	return rec.Raw(interop.RawType(Name, f.kindName()))
}

// payload is what becomes of a record; nil if it is kept raw, or a compaction.
func (im *importer) payload(f *facts) (p event.Payload, cost event.Cost, err error) {
	c := converter{ctx: im.ctx, log: im.log}
	switch f.kind {
	case "message":
		return c.message(f)
	case "custom_message":
		p, err = c.context(f, f.text("customType"), f.value("content"), "content")
	case "branch_summary":
		p, err = c.context(f, f.kind, f.value("summary"), "summary")
	case "session_info":
		if name := f.text("name"); name != "" {
			p = event.Session{State: event.SessionStateUpdated, Title: name, Extra: f.without("name")}
		}
	}
	return p, 0, err
}

// compaction covers everything before it. In its place stand the summary, and
// what was kept.
func (s *session) compaction(f *facts) event.Compaction {
	taken := []string{"summary"}
	before, ok := f.count("tokensBefore")
	if ok {
		taken = append(taken, "tokensBefore")
	}
	c := event.Compaction{
		Strategy: "summary", Covers: event.Covers{From: 1, To: s.Seq()},
		Summary: f.text("summary"), TokensBefore: before, Extra: f.without(taken...),
	}
	c.ReadFiles, c.ModifiedFiles = f.files()
	kept := s.trail.SaidSince(s.firstKept(f))
	if len(kept) == 0 {
		return c
	}
	if c.Summary != "" {
		m := event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}}
		c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
	}
	for _, seq := range kept {
		c.Entries = append(c.Entries, event.CompactionEntry{Seq: seq})
	}
	return c
}

// firstKept is the seq of the first record that a compaction kept; beyond the
// newest event if it kept none. Version 1 counts the records of the file.
func (s *session) firstKept(f *facts) int64 {
	if seq, ok := s.nodes[f.text("firstKeptEntryId")]; ok {
		return seq
	}
	if i, ok := f.count("firstKeptEntryIndex"); ok && i < int64(len(s.seqs)) && s.seqs[i] > 0 {
		return s.seqs[i]
	}
	return s.Seq() + 1
}
