package pi

import (
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The parts of a record's events, for their keys and origins.
const (
	ownPart    = iota // the event of the record itself
	movePart          // head_moved before it
	forkPart          // session_forked, from the header
	headerPart        // session_started or session_updated, from the header
	usagePart         // step_completed, from the usage of a summary
	latePart          // session_updated, from a header that an earlier version of the file lacked
)

// apply adds a record to its session, unless the session has it already.
func (im *importer) apply(s *session, rec records.Record, f *facts) error {
	m := s.copied(f)
	if m.Seq == 0 {
		m = s.find(f)
	}
	if m.Seq > 0 {
		im.result.Found(m.Withheld)
		s.matched = true
		s.remember(f, m)
		return nil
	}
	if s.repeatsErased(f) {
		im.result.Found(true)
		return nil
	}
	if done, err := im.leavesOut(s, f); done || err != nil {
		return err
	}
	if reason := s.conflict(); reason != "" {
		s.Drop()
		return rec.Conflict(s.ID, reason)
	}
	if err := im.addHeader(s); err != nil {
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

// leavesOut looks for the owner of a new record, and leaves the record out if its original is
// redacted, or was removed.
func (im *importer) leavesOut(s *session, f *facts) (bool, error) {
	from, err := s.Elsewhere(im.ctx, f.key(), f.at)
	im.isCopy = from.Session != ""
	if !from.Withheld || err != nil {
		return false, err
	}
	if s.Session.LeaveOut(from) {
		im.result.Imported++
	} else {
		im.result.Found(true)
	}
	return true, nil
}

// addHeader queues the event of the header, if the log lacks it: session_started, or
// session_updated in a fork.
func (im *importer) addHeader(s *session) error {
	h := s.header
	if h == nil {
		return nil
	}
	payload := event.Session{
		Updated: true, Title: s.name, Agent: formatName, CWD: h.facts.text("cwd"), Extra: h.rec.Value,
		Source: event.SessionSource{Format: formatName, Version: version(&h.facts), Path: h.rec.Origin(0).Source, SessionID: s.ID},
	}
	if payload.Title == "" {
		payload.Title = s.prompt
	}
	if s.New() {
		payload.Updated = false
	}
	if h.facts.isReplacement() {
		payload.Extra, payload.Source.Version = nil, ""
	}
	if s.New() && !s.hasCopies {
		payload.Parent.SessionID = s.parent
	}
	e, err := h.rec.Event(headerPart, payload)
	if err == nil && s.New() && s.hasCopies {
		err = e.SetMetadata("copy_of", mark.Copy{Session: s.parent})
	}
	if err == nil && s.New() {
		err = s.MarkStart(&e)
	}
	if err == nil && h.facts.isReplacement() {
		err = e.SetMetadata(mark.NoHeader, true)
	}
	if err != nil {
		return err
	}
	s.trail.Grow(s.Add(sessions.Key{Own: s.ID, Part: headerPart}, h.facts.at, e), e.Type)
	s.header = nil
	if !h.facts.isReplacement() {
		im.result.Imported++
	}
	return nil
}

// version is the version of the format. The header of version 1 has none.
func version(header *facts) string {
	v := header.value("version")
	if v.Kind() != '0' {
		return "1"
	}
	return string(v)
}

// add queues the event of the record, after a head_moved if it continues elsewhere.
func (im *importer) add(s *session, rec *records.Record, f *facts) error {
	c := converter{ctx: im.ctx, log: im.log}
	p, cost, err := c.payload(f)
	if err != nil {
		return err
	}
	if to := s.parentSeq(f); s.trail.Leaves(to) {
		if err := im.addMove(s, rec, f, to); err != nil {
			return err
		}
	}
	switch f.kind {
	case "compaction":
		p, err = s.compaction(&c, f)
	case "context_edit":
		p, err = c.contextEdit(s, f)
	}
	if err != nil {
		return err
	}
	e, err := im.event(rec, f, p)
	if err != nil {
		return err
	}
	e.Cost = cost
	if im.isCopy {
		if err := e.SetMetadata("inherited", true); err != nil {
			return err
		}
	}
	seq := s.Add(f.key(), f.at, e)
	s.trail.Grow(seq, e.Type)
	s.indexRecord(f, seq)
	s.note(f, seq)
	return im.addUsage(s, rec, f)
}

// addUsage queues the tokens and the cost of the answer that made a summary.
func (im *importer) addUsage(s *session, rec *records.Record, f *facts) error {
	if f.kind != "compaction" && f.kind != "branch_summary" {
		return nil
	}
	usage, cost, ok := usageOf(f.value("usage"))
	if !ok || usage.IsZero() && cost == 0 {
		return nil
	}
	e, err := rec.Event(usagePart, event.StepCompletion{ResponseID: "summary " + f.id, Usage: usage})
	if err != nil {
		return err
	}
	e.Cost = cost
	if im.isCopy {
		if err := e.SetMetadata("inherited", true); err != nil {
			return err
		}
	}
	s.trail.Grow(s.Join(sessions.Key{Part: usagePart}, f.at, e), e.Type)
	return nil
}

// addMove queues the head_moved to the event that the record follows.
func (im *importer) addMove(s *session, rec *records.Record, f *facts, to int64) error {
	e, err := rec.Event(movePart, event.HeadMove{To: to, Reason: "another branch of the session"})
	if err != nil {
		return err
	}
	s.trail.Moved(s.Add(sessions.Key{Part: movePart}, f.at, e), to)
	return nil
}

// event makes the event of the record. Without a payload, or if the log does not accept
// it, the event holds the raw record.
func (im *importer) event(rec *records.Record, f *facts, p event.Payload) (event.Event, error) {
	if p != nil {
		e, err := rec.EventOf(p, rec.Whole(ownPart))
		if err == nil || !errors.Is(err, event.ErrInvalid) {
			im.result.Imported++
			return e, err
		}
	}
	im.result.Raw++
	return rec.Raw(records.RawType(formatName, f.typeName()), ownPart)
}

// payload converts a record; nil if it stays raw, or is a compaction.
func (c *converter) payload(f *facts) (p event.Payload, cost event.Cost, err error) {
	switch f.kind {
	case "message":
		return c.message(f)
	case "custom_message":
		p, err = c.context(f, f.text("customType"), f.value("content"), "content")
	case "branch_summary":
		p, err = c.context(f, f.kind, f.value("summary"), "summary")
	case "usage":
		p, cost = answered(f)
	case "session_info":
		if name := f.text("name"); name != "" {
			p = event.Session{Updated: true, Title: name, Extra: f.withoutMembers("name")}
		}
	}
	return p, cost, err
}

// answered converts the tokens and the cost of an answer that is no message, as of a request
// that keeps a cache warm.
func answered(f *facts) (event.Payload, event.Cost) {
	usage, cost, ok := usageOf(f.value("usage"))
	if !ok || f.id == "" {
		return nil, 0
	}
	return event.StepCompletion{
		Provider: f.text("provider"), Model: f.text("model"), ResponseID: f.id, Usage: usage,
		Extra: f.withoutMembers("provider", "model", "usage"),
	}, cost
}

// compaction covers all events before it. The model sees the summary and the kept
// messages instead.
func (s *session) compaction(converter *converter, f *facts) (event.Payload, error) {
	converted := []string{"summary"}
	before, ok := f.count("tokensBefore")
	if ok {
		converted = append(converted, "tokensBefore")
	}
	c := event.Compaction{
		Strategy: "summary", Covers: event.Stretch{From: 1, To: s.Seq()},
		Summary: f.text("summary"), TokensBefore: before, Extra: f.withoutMembers(converted...),
	}
	c.ReadFiles, c.ModifiedFiles = f.files()
	kept, err := converter.retained(f)
	if err == nil && len(kept) == 0 {
		kept, err = s.kept(converter, s.firstKept(f))
	}
	if err != nil || len(kept) == 0 {
		return c, err
	}
	if c.Summary != "" {
		m := event.Message{Role: event.User, Parts: []event.Part{event.Text(c.Summary)}}
		c.Entries = append(c.Entries, event.CompactionEntry{Message: &m})
	}
	c.Entries = append(c.Entries, kept...)
	return c, nil
}

// kept are the messages from seq on, with the edits that are not older.
func (s *session) kept(c *converter, from int64) (all []event.CompactionEntry, err error) {
	for _, seq := range s.trail.ShownSince(from) {
		m, ok, err := s.edited(c, seq, from)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			all = append(all, event.CompactionEntry{Seq: seq})
		case m != nil:
			all = append(all, event.CompactionEntry{Message: m})
		}
	}
	return all, nil
}

// firstKept is the seq of the first record that a compaction kept, or a seq after the
// newest event if it kept none. Version 1 has the index of the record.
func (s *session) firstKept(f *facts) int64 {
	if seq, ok := s.nodes[f.text("firstKeptEntryId")]; ok {
		return seq
	}
	if i, ok := f.count("firstKeptEntryIndex"); ok && i < int64(len(s.seqs)) && s.seqs[i] > 0 {
		return s.seqs[i]
	}
	return s.Seq() + 1
}
