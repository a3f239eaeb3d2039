package gemini

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
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
	// converter converts the messages of the record.
	converter converter
	// newest is the seq of the newest event of the record. added counts events that are
	// new to the log. isRaw is true if one of them holds the raw record.
	newest int64
	added  int
	isRaw  bool
	// withheld is true if the log has redacted events of the record: then nothing that
	// holds all of the record is stored.
	withheld bool
}

// apply adds the events of a record that the session does not have yet.
func (im *importer) apply(s *session, r *record) error {
	w := recordWriter{im: im, s: s, r: r, parent: s.lastSeq}
	if err := w.write(); err != nil {
		return err
	}
	switch {
	case w.added == 0:
		s.matched = true
		im.result.Found(w.withheld)
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
	pieces, err := w.converter.pieces(w.r)
	if err != nil {
		return w.r.Located(err)
	}
	if known := w.newestPiece(pieces); known > 0 {
		w.parent, w.s.matched = w.parentOfGrowth(known), true
	}
	usage, changed := w.r.usage(), false
	if w.withheld || w.s.hasUsage(w.r.id, usage) {
		usage = event.Usage{}
	}
	for i := range pieces {
		p := &pieces[i]
		if m := w.find(p); m.Seq > 0 {
			changed = changed || !w.withheld && !w.s.says(m.Seq, &p.m)
			w.newest = max(w.newest, m.Seq)
			continue
		}
		if p.m.Role == event.Assistant {
			p.m.Usage, usage = usage, event.Usage{}
		}
		if err := w.addPiece(p, part(i), len(pieces) == 1); err != nil {
			return err
		}
	}
	return w.addRest(usage, changed)
}

// find finds the event of a piece.
func (w *recordWriter) find(p *piece) sessions.Match { return w.s.FindOwn(p.name, 0) }

// addPiece adds a piece. isWhole is true if the piece is all of the record.
func (w *recordWriter) addPiece(p *piece, part int, isWhole bool) error {
	if err := w.converter.store(w.im.ctx, w.im.log, p.m.Parts); err != nil {
		return w.r.Located(err)
	}
	from := w.r.Origin(part)
	if isWhole {
		from = w.r.Whole(part)
	}
	if err := w.addPayload(sessions.Key{Own: p.name}, from, p.m); err != nil {
		return err
	}
	w.s.indexMessage(w.newest, &p.m)
	return nil
}

// newestPiece is the seq of the newest piece in the session; 0 if there is none. If a
// piece is redacted, the record is withheld: changes of it cannot be detected.
func (w *recordWriter) newestPiece(pieces []piece) (newest int64) {
	for i := range pieces {
		m := w.find(&pieces[i])
		newest = max(newest, m.Seq)
		w.withheld = w.withheld || m.Withheld
	}
	return newest
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
	of, err := json.Marshal([]any{w.r.id, counters(w.r.usage())}) // other messages may have equal counts
	if err != nil {
		return w.r.Located(err)
	}
	key := sessions.Key{Own: "usage " + w.r.id, Digest: event.DigestOf(of)}
	if m := w.s.Find(key, nil); m.Seq > 0 {
		w.newest = max(w.newest, m.Seq)
		return nil
	}
	if usage.IsZero() {
		return nil
	}
	step := event.StepCompletion{Provider: "google", Model: w.r.text("model"), ResponseID: w.r.id, Usage: usage}
	from := w.r.Origin(usagePart)
	from.Key = key.Digest
	if err := w.addPayload(key, from, step); err != nil {
		return err
	}
	w.s.addUsage(w.r.id, usage)
	return nil
}

// addChange adds the event of a $set: messages, a summary, or the raw record.
func (w *recordWriter) addChange() error {
	if w.isKnown() {
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
		if w.withheld {
			return nil
		}
		return w.addPayload(w.key(), w.r.Whole(ownPart), p)
	}
	title := titles.Of(set.Maybe("summary"))
	if title == "" {
		return w.addRaw()
	}
	return w.addPayload(w.key(), w.r.Whole(ownPart), event.Session{Updated: true, Title: title, Extra: w.r.Value})
}

// key is the key of an event with all of the record.
func (w *recordWriter) key() sessions.Key {
	key := sessions.Key{Digest: w.r.Key}
	if w.r.id != "" {
		key.Own = "record " + w.r.id
	}
	return key
}

// isKnown reports whether the session has an event with all of the record, or must not
// get it.
func (w *recordWriter) isKnown() bool {
	m := w.s.Find(w.key(), func() sessions.Shape {
		raw := records.RawType(formatName, w.r.typeName())
		return sessions.Shape{Types: []event.Type{raw, event.CompactionTriggered, event.SessionUpdated}}
	})
	w.newest = max(w.newest, m.Seq)
	w.withheld = w.withheld || m.Withheld
	return m.Seq > 0 || w.withheld
}

// replacement returns a compaction to the given messages. It refers to messages that the
// session has by seq. If one of them is redacted, the record is withheld, because it
// repeats the message.
func (w *recordWriter) replacement(messages jsontext.Value) (p event.Compaction, err error) {
	p = event.Compaction{Strategy: "replace", Replace: true, Extra: w.r.Value}
	elements, err := rawjson.Elements(messages)
	if err != nil {
		return p, err
	}
	for _, v := range elements {
		r, err := readRecord(records.Record{Value: v})
		if err != nil || !r.isMessage() {
			continue
		}
		pieces, err := w.converter.pieces(&r)
		if err != nil {
			return p, err
		}
		for i := range pieces {
			p.Entries = append(p.Entries, w.compactionEntry(&pieces[i]))
		}
	}
	for i := range p.Entries {
		if m := p.Entries[i].Message; m != nil && !w.withheld {
			if err := w.converter.store(w.im.ctx, w.im.log, m.Parts); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// compactionEntry refers to a piece if the session has it, and holds the piece
// otherwise.
func (w *recordWriter) compactionEntry(p *piece) event.CompactionEntry {
	m := w.find(p)
	w.withheld = w.withheld || m.Withheld
	if m.Seq > 0 && w.s.says(m.Seq, &p.m) {
		return event.CompactionEntry{Seq: m.Seq}
	}
	p.m.Extra = nil // the extra of the compaction has it
	return event.CompactionEntry{Message: &p.m}
}

// addRaw adds the raw record.
func (w *recordWriter) addRaw() error {
	if w.isKnown() {
		return nil
	}
	e, err := w.r.Raw(records.RawType(formatName, w.r.typeName()), ownPart)
	if err != nil {
		return w.r.Located(err)
	}
	w.isRaw = true
	return w.addEvent(w.key(), e)
}

// addPayload adds the event of a payload. If the log does not accept it, addPayload adds
// the raw record.
func (w *recordWriter) addPayload(key sessions.Key, from records.Origin, p event.Payload) error {
	e, err := w.r.EventOf(p, from)
	if errors.Is(err, event.ErrInvalid) {
		return w.addRaw()
	}
	if err != nil {
		return w.r.Located(err)
	}
	return w.addEvent(key, e)
}

// addEvent queues an event, after a head_moved if it continues elsewhere.
func (w *recordWriter) addEvent(key sessions.Key, e event.Event) error {
	if reason := w.s.conflict(); reason != "" {
		w.s.Drop()
		return w.r.Conflict(w.s.ID, reason)
	}
	if w.added == 0 && w.parent > 0 && w.s.trail.Leaves(w.parent) {
		move, err := w.r.Event(movePart, event.HeadMove{To: w.parent, Reason: "the session was rewound"})
		if err != nil {
			return w.r.Located(err)
		}
		w.s.trail.Moved(w.s.Add(sessions.Key{Part: movePart}, w.r.at, move), w.parent)
	}
	w.newest = w.s.Add(key, w.r.at, e)
	w.s.trail.Grow(w.newest, e.Type)
	w.added++
	return nil
}

// addSummary adds the summary of a header as the title, if it is new.
func (im *importer) addSummary(s *session, r *record) error {
	title := titles.Of(r.text("summary"))
	if title == "" || s.titles[title] || s.Erased || s.hasMasked(title) {
		return nil
	}
	s.titles[title] = true
	w := recordWriter{im: im, s: s, r: r}
	s.matched = true // the header matches
	from := r.Origin(summaryPart)
	return w.addPayload(sessions.Key{Part: summaryPart}, from, event.Session{Updated: true, Title: title})
}

// hasMasked reports whether the session has the title with masks.
func (s *session) hasMasked(title string) bool {
	for stored := range s.titles {
		if mark.IsMaskOf(stored, title) {
			return true
		}
	}
	return false
}
