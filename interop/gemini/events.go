package gemini

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// The parts of a record's events, for their origins. Calls and results follow piecePart.
const (
	ownPart     = iota // the event of the record itself
	movePart           // head_moved before it
	summaryPart        // title from the summary of a header
	usagePart          // tokens that came later than the message
	piecePart          // the second and later pieces of a message
)

// recordWriter adds the events of a record to its session.
type recordWriter struct {
	im *importer
	s  *session
	r  *record
	// parent is the seq that the first event follows; 0 if it follows the head.
	parent int64
	// occurrence numbers equal records of the file.
	occurrence int
	// newest is the seq of the newest event of the record. added counts events that are
	// new to the log. isRaw is true if one of them holds the raw record.
	newest int64
	added  int
	isRaw  bool
}

// apply adds the events of a record that the session does not have yet.
func (im *importer) apply(s *session, r *record) error {
	a := recordWriter{im: im, s: s, r: r, parent: s.lastSeq, occurrence: s.occurrences[r.digest]}
	s.occurrences[r.digest]++
	if err := a.write(); err != nil {
		return err
	}
	switch {
	case a.added == 0:
		s.matched = true
		im.result.Present++
	case a.isRaw:
		im.result.Raw++
	default:
		im.result.Imported++
	}
	if s.Full() {
		return s.FlushBehind(im.ctx)
	}
	return nil
}

// write adds the events of the record.
func (a *recordWriter) write() (err error) {
	last := &a.s.lastSeq
	switch {
	case a.r.members.Has("$rewindTo"):
		a.parent = a.s.rewindTarget(a.r.text("$rewindTo"))
		*last = 0
		err = a.addRaw()
	case a.r.isMessage():
		err = a.addMessage()
	case a.r.change() != nil:
		err = a.addChange()
	default:
		err = a.addRaw()
	}
	*last = max(*last, a.newest)
	return err
}

// rewindTarget is the seq to follow after a rewind to before a message.
func (s *session) rewindTarget(id string) int64 {
	if seq, ok := s.parents[id]; ok {
		return seq
	}
	return startSeq
}

// addMessage adds the pieces of a message that the session does not have yet.
func (a *recordWriter) addMessage() error {
	if _, again := a.s.parents[a.r.id]; !again {
		a.s.parents[a.r.id] = a.s.lastSeq
	}
	c := converter{ctx: a.im.ctx, log: a.im.log}
	pieces, err := c.pieces(a.r)
	if err != nil {
		return a.r.Located(err)
	}
	known, redacted := a.newestPiece(pieces)
	if known > 0 {
		a.parent, a.s.matched = a.parentOfGrowth(known), true
	}
	usage, changed := a.r.usage(), false
	if redacted || a.s.hasUsage(a.r.id, usage) {
		usage = event.Usage{}
	}
	for i := range pieces {
		p := &pieces[i]
		if seq, ok := a.s.Find(a.key(p.name)); ok {
			changed = changed || !redacted && a.s.digests[seq] != contentDigest(&p.m)
			a.newest = max(a.newest, seq)
			continue
		}
		if p.m.Role == event.Assistant {
			p.m.Usage, usage = usage, event.Usage{}
		}
		if err := a.addPayload(a.key(p.name), part(i), p.m); err != nil {
			return err
		}
		a.s.indexMessage(a.newest, &p.m)
	}
	return a.addRest(usage, changed)
}

// newestPiece is the seq of the newest piece in the session; 0 if there is none.
// redacted is true if a piece is redacted: then changes cannot be detected.
func (a *recordWriter) newestPiece(pieces []piece) (newest int64, redacted bool) {
	for i := range pieces {
		if seq, ok := a.s.Find(a.key(pieces[i].name)); ok {
			newest = max(newest, seq)
			redacted = redacted || a.s.redacted[seq]
		}
	}
	return newest, redacted
}

// parentOfGrowth is the seq that new pieces of a stored message follow. It is 0, the
// head, if the newest stored piece is on the active path.
func (a *recordWriter) parentOfGrowth(newest int64) int64 {
	if a.s.trail.Holds(newest) {
		return 0
	}
	return newest
}

// part is the part number of a piece.
func part(piece int) int {
	if piece == 0 {
		return ownPart
	}
	return piecePart + piece - 1
}

// addRest adds tokens that came later than the message, and the raw record if it
// changed.
func (a *recordWriter) addRest(usage event.Usage, changed bool) error {
	key := a.key(fmt.Sprint("usage ", a.r.id, counters(usage)))
	if _, told := a.s.Find(key); !told && !usage.IsZero() {
		model := a.r.text("model")
		err := a.addPayload(key, usagePart, event.StepCompletion{Provider: "google", Model: model, ResponseID: a.r.id, Usage: usage})
		if err != nil {
			return err
		}
		a.s.addUsage(a.r.id, usage)
	}
	if changed {
		return a.addRaw()
	}
	return nil
}

// key is the key of an event that the session has once.
func (a *recordWriter) key(name string) interop.Key { return interop.FixedKey(a.s.ID, name) }

// addChange adds the event of a $set: messages, a summary, or the raw record.
func (a *recordWriter) addChange() error {
	key := interop.RecordKey(a.s.ID, a.r.digest, a.occurrence, ownPart)
	if seq, ok := a.s.Find(key); ok {
		a.newest = seq
		return nil
	}
	set, err := parts.Open(a.r.change())
	if err != nil {
		return a.addRaw()
	}
	if messages := set.Peek("messages"); messages.Kind() == '[' {
		p, err := a.replacement(messages)
		if err != nil {
			return a.r.Located(err)
		}
		return a.addPayload(key, ownPart, p)
	}
	title := interop.Title(set.Maybe("summary"))
	if title == "" {
		return a.addRaw()
	}
	return a.addPayload(key, ownPart, event.Session{State: event.SessionStateUpdated, Title: title, Extra: a.r.Value})
}

// replacement returns a compaction to the given messages. It refers to messages that the
// session has by seq.
func (a *recordWriter) replacement(messages jsontext.Value) (p event.Compaction, err error) {
	p = event.Compaction{Strategy: "replace", Replace: true, Extra: a.r.Value}
	c := converter{ctx: a.im.ctx, log: a.im.log}
	elements, err := rawjson.Elements(messages)
	if err != nil {
		return p, err
	}
	for _, v := range elements {
		r, err := readRecord(interop.Record{Value: v})
		if err != nil || !r.isMessage() {
			continue
		}
		pieces, err := c.pieces(&r)
		if err != nil {
			return p, err
		}
		for i := range pieces {
			p.Entries = append(p.Entries, a.compactionEntry(&pieces[i]))
		}
	}
	return p, nil
}

// compactionEntry refers to a piece if the session has it, and holds the piece
// otherwise.
func (a *recordWriter) compactionEntry(p *piece) event.CompactionEntry {
	if seq, ok := a.s.Find(a.key(p.name)); ok && a.s.digests[seq] == contentDigest(&p.m) {
		return event.CompactionEntry{Seq: seq}
	}
	p.m.Extra = nil // the extra of the compaction has it
	return event.CompactionEntry{Message: &p.m}
}

// addRaw adds the raw record.
func (a *recordWriter) addRaw() error {
	key := interop.RecordKey(a.s.ID, a.r.digest, a.occurrence, ownPart)
	if seq, ok := a.s.Find(key); ok {
		a.newest = max(a.newest, seq)
		return nil
	}
	e, err := a.r.Raw(interop.RawType(Name, a.r.typeName()))
	if err != nil {
		return a.r.Located(err)
	}
	a.isRaw = true
	return a.addEvent(key, e)
}

// addPayload adds the event of a payload. If the log does not accept it, addPayload adds
// the raw record.
func (a *recordWriter) addPayload(key interop.Key, part int, p event.Payload) error {
	e, err := a.r.Event(part, p)
	if errors.Is(err, event.ErrInvalid) {
		return a.addRaw()
	}
	if err != nil {
		return a.r.Located(err)
	}
	return a.addEvent(key, e)
}

// addEvent queues an event, after a head_moved if it continues elsewhere.
func (a *recordWriter) addEvent(key interop.Key, e event.Event) error {
	if reason := a.s.conflict(); reason != "" {
		a.s.Drop()
		return a.r.Conflict(a.s.ID, reason)
	}
	if a.added == 0 && a.parent > 0 && a.s.trail.Leaves(a.parent) {
		move, err := a.r.Event(movePart, event.HeadMove{To: a.parent, Reason: "the session was rewound"})
		if err != nil {
			return a.r.Located(err)
		}
		key := interop.RecordKey(a.s.ID, a.r.digest, a.occurrence, movePart)
		a.s.trail.Moved(a.s.Add(key, a.r.at, move), a.parent)
	}
	a.newest = a.s.Add(key, a.r.at, e)
	a.s.trail.Grow(a.newest, e.Type)
	a.added++
	return nil
}

// addSummary adds the summary of a header as the title, if it is new.
func (im *importer) addSummary(s *session, r *record) error {
	title := interop.Title(r.text("summary"))
	key := interop.FixedKey(s.ID, "summary "+r.text("summary"))
	if _, ok := s.Find(key); ok || title == "" || title == s.title || s.startRedacted {
		return nil
	}
	s.title = title
	a := recordWriter{im: im, s: s, r: r}
	s.matched = true // the header matches
	return a.addPayload(key, summaryPart, event.Session{State: event.SessionStateUpdated, Title: title})
}
