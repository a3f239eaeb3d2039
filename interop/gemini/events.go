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
	w := recordWriter{im: im, s: s, r: r, parent: s.lastSeq, occurrence: s.occurrences[r.digest]}
	s.occurrences[r.digest]++
	if err := w.write(); err != nil {
		return err
	}
	switch {
	case w.added == 0:
		s.matched = true
		im.result.Present++
	case w.isRaw:
		im.result.Raw++
	default:
		im.result.Imported++
	}
	if s.Full() {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// write adds the events of the record.
func (w *recordWriter) write() (err error) {
	last := &w.s.lastSeq
	switch {
	case w.r.members.Has("$rewindTo"):
		w.parent = w.s.rewindTarget(w.r.text("$rewindTo"))
		*last = 0
		err = w.addRaw()
	case w.r.isMessage():
		err = w.addMessage()
	case w.r.change() != nil:
		err = w.addChange()
	default:
		err = w.addRaw()
	}
	*last = max(*last, w.newest)
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
func (w *recordWriter) addMessage() error {
	if _, again := w.s.parents[w.r.id]; !again {
		w.s.parents[w.r.id] = w.s.lastSeq
	}
	c := converter{ctx: w.im.ctx, log: w.im.log}
	pieces, err := c.pieces(w.r)
	if err != nil {
		return w.r.Located(err)
	}
	known, redacted := w.newestPiece(pieces)
	if known > 0 {
		w.parent, w.s.matched = w.parentOfGrowth(known), true
	}
	usage, changed := w.r.usage(), false
	if redacted || w.s.hasUsage(w.r.id, usage) {
		usage = event.Usage{}
	}
	for i := range pieces {
		p := &pieces[i]
		if seq, ok := w.s.Find(w.key(p.name)); ok {
			changed = changed || !redacted && w.s.digests[seq] != contentDigest(&p.m)
			w.newest = max(w.newest, seq)
			continue
		}
		if p.m.Role == event.Assistant {
			p.m.Usage, usage = usage, event.Usage{}
		}
		if err := w.addPayload(w.key(p.name), part(i), p.m); err != nil {
			return err
		}
		w.s.indexMessage(w.newest, &p.m)
	}
	return w.addRest(usage, changed)
}

// newestPiece is the seq of the newest piece in the session; 0 if there is none.
// redacted is true if a piece is redacted: then changes cannot be detected.
func (w *recordWriter) newestPiece(pieces []piece) (newest int64, redacted bool) {
	for i := range pieces {
		if seq, ok := w.s.Find(w.key(pieces[i].name)); ok {
			newest = max(newest, seq)
			redacted = redacted || w.s.redacted[seq]
		}
	}
	return newest, redacted
}

// parentOfGrowth is the seq that new pieces of a stored message follow. It is 0, the
// head, if the newest stored piece is on the active path.
func (w *recordWriter) parentOfGrowth(newest int64) int64 {
	if w.s.trail.Holds(newest) {
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
func (w *recordWriter) addRest(usage event.Usage, changed bool) error {
	if err := w.addUsage(usage); err != nil || !changed {
		return err
	}
	return w.addRaw()
}

// addUsage adds a step_completed with tokens that the log lacks. usage is zero if the log
// has them already.
func (w *recordWriter) addUsage(usage event.Usage) error {
	key := w.key(fmt.Sprint("usage ", w.r.id, counters(w.r.usage())))
	if seq, ok := w.s.Find(key); ok {
		w.newest = max(w.newest, seq)
		return nil
	}
	if usage.IsZero() {
		return nil
	}
	step := event.StepCompletion{Provider: "google", Model: w.r.text("model"), ResponseID: w.r.id, Usage: usage}
	if err := w.addPayload(key, usagePart, step); err != nil {
		return err
	}
	w.s.addUsage(w.r.id, usage)
	return nil
}

// key is the key of an event that the session has once.
func (w *recordWriter) key(name string) interop.Key { return interop.FixedKey(w.s.ID, name) }

// addChange adds the event of a $set: messages, a summary, or the raw record.
func (w *recordWriter) addChange() error {
	key := interop.RecordKey(w.s.ID, w.r.digest, w.occurrence, ownPart)
	if seq, ok := w.s.Find(key); ok {
		w.newest = seq
		return nil
	}
	set, err := parts.Open(w.r.change())
	if err != nil {
		return w.addRaw()
	}
	if messages := set.Peek("messages"); messages.Kind() == '[' {
		p, err := w.replacement(messages)
		if err != nil {
			return w.r.Located(err)
		}
		return w.addPayload(key, ownPart, p)
	}
	title := interop.Title(set.Maybe("summary"))
	if title == "" {
		return w.addRaw()
	}
	return w.addPayload(key, ownPart, event.Session{State: event.SessionStateUpdated, Title: title, Extra: w.r.Value})
}

// replacement returns a compaction to the given messages. It refers to messages that the
// session has by seq.
func (w *recordWriter) replacement(messages jsontext.Value) (p event.Compaction, err error) {
	p = event.Compaction{Strategy: "replace", Replace: true, Extra: w.r.Value}
	c := converter{ctx: w.im.ctx, log: w.im.log}
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
			p.Entries = append(p.Entries, w.compactionEntry(&pieces[i]))
		}
	}
	return p, nil
}

// compactionEntry refers to a piece if the session has it, and holds the piece
// otherwise.
func (w *recordWriter) compactionEntry(p *piece) event.CompactionEntry {
	if seq, ok := w.s.Find(w.key(p.name)); ok && w.s.digests[seq] == contentDigest(&p.m) {
		return event.CompactionEntry{Seq: seq}
	}
	p.m.Extra = nil // the extra of the compaction has it
	return event.CompactionEntry{Message: &p.m}
}

// addRaw adds the raw record.
func (w *recordWriter) addRaw() error {
	key := interop.RecordKey(w.s.ID, w.r.digest, w.occurrence, ownPart)
	if seq, ok := w.s.Find(key); ok {
		w.newest = max(w.newest, seq)
		return nil
	}
	e, err := w.r.Raw(interop.RawType(Name, w.r.typeName()))
	if err != nil {
		return w.r.Located(err)
	}
	w.isRaw = true
	return w.addEvent(key, e)
}

// addPayload adds the event of a payload. If the log does not accept it, addPayload adds
// the raw record.
func (w *recordWriter) addPayload(key interop.Key, part int, p event.Payload) error {
	e, err := w.r.Event(part, p)
	if errors.Is(err, event.ErrInvalid) {
		return w.addRaw()
	}
	if err != nil {
		return w.r.Located(err)
	}
	return w.addEvent(key, e)
}

// addEvent queues an event, after a head_moved if it continues elsewhere.
func (w *recordWriter) addEvent(key interop.Key, e event.Event) error {
	if reason := w.s.conflict(); reason != "" {
		w.s.Drop()
		return w.r.Conflict(w.s.ID, reason)
	}
	if w.added == 0 && w.parent > 0 && w.s.trail.Leaves(w.parent) {
		move, err := w.r.Event(movePart, event.HeadMove{To: w.parent, Reason: "the session was rewound"})
		if err != nil {
			return w.r.Located(err)
		}
		key := interop.RecordKey(w.s.ID, w.r.digest, w.occurrence, movePart)
		w.s.trail.Moved(w.s.Add(key, w.r.at, move), w.parent)
	}
	w.newest = w.s.Add(key, w.r.at, e)
	w.s.trail.Grow(w.newest, e.Type)
	w.added++
	return nil
}

// addSummary adds the summary of a header as the title, if it is new.
func (im *importer) addSummary(s *session, r *record) error {
	title := interop.Title(r.text("summary"))
	key := interop.FixedKey(s.ID, "summary "+r.text("summary"))
	if _, ok := s.Find(key); ok || title == "" || event.IsMaskOf(s.title, title) || s.startRedacted {
		return nil
	}
	s.title = title
	w := recordWriter{im: im, s: s, r: r}
	s.matched = true // the header matches
	return w.addPayload(key, summaryPart, event.Session{State: event.SessionStateUpdated, Title: title})
}
