package gemini

import (
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/titles"
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
	// piece is the piece of the record that the next event has; nil if the event has another part.
	piece *piece
	// isAgain is true if the record is another version of the message before.
	isAgain bool
	// isDeferred is true if a later record decides what the record means.
	isDeferred bool
	// withheld is true if the log has redacted events of the record: then nothing that
	// holds all of the record is stored.
	withheld bool
}

// apply adds the events of a record that the session does not have yet.
func (im *importer) apply(s *session, r *record) error {
	w := recordWriter{im: im, s: s, r: r, parent: s.lastSeq, converter: converter{callers: s.callers}}
	if err := w.write(); err != nil {
		return err
	}
	switch {
	case w.isDeferred:
		im.result.Found(false)
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
		w.s.told.rewind(w.r.text("$rewindTo"))
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
	pieces, err := w.converter.pieces(w.r)
	if err != nil {
		return w.r.Located(err)
	}
	if err := w.applyReset(); err != nil {
		return err
	}
	return w.addPieces(pieces)
}

// addPieces adds the pieces of a message that the session does not have yet.
func (w *recordWriter) addPieces(pieces []piece) error {
	if w.isWritten() {
		w.addWritten(pieces)
		return nil
	}
	if _, again := w.s.parents[w.r.id]; !again {
		w.s.parents[w.r.id] = w.s.lastSeq
	}
	w.s.told.tell(w.r, pieces)
	if known := w.newestPiece(pieces); known > 0 {
		w.parent, w.s.matched = w.parentOfGrowth(known), true
	}
	usage, changed := w.r.usage(), false
	if w.withheld || w.s.hasUsage(w.r.id, usage) {
		usage = event.Usage{}
	}
	for i := range pieces {
		p, key := &pieces[i], sessions.Key{Own: pieces[i].name}
		if m := w.find(p); m.Seq > 0 {
			same := w.withheld || w.s.says(m.Seq, p)
			if same || !w.isWrittenAgain(p, m.Seq) {
				changed = changed || !same && !w.s.says(w.s.FindOwn(p.name, 0).Seq, p) // the first version may come again
				w.newest = max(w.newest, m.Seq)
				continue
			}
			key = sessions.Key{Own: p.name + againSuffix, Digest: contentDigest(&p.m)}
			m := w.s.Find(key, nil)
			w.s.versions[p.name] = m
			if m.Seq > 0 {
				w.newest, w.withheld = max(w.newest, m.Seq), w.withheld || m.Withheld
				continue
			}
			w.parent, w.isAgain = w.s.parents[w.r.id], true
		}
		if p.m.Role == event.Assistant {
			p.m.Usage, usage = usage, event.Usage{}
		}
		if err := w.addPiece(p, key, part(i), len(pieces) == 1); err != nil {
			return err
		}
		if key.Digest != "" {
			w.s.versions[p.name] = sessions.Match{Seq: w.newest}
		}
	}
	if w.newest > 0 {
		w.s.tip = w.newest
	}
	return w.addRest(usage, changed)
}

// againSuffix is in the key of a message that the program has written again with other words.
const againSuffix = " again"

// isWrittenAgain reports whether a piece is another version of the newest message: the program
// has written the message again, while the model went on. The new version takes the place of
// the version at seq.
func (w *recordWriter) isWrittenAgain(p *piece, seq int64) bool {
	return p.m.Role == event.Assistant && len(p.m.ToolCalls()) == 0 && seq == w.s.tip && w.added == 0
}

// find finds the event of a piece: of the version that the file had last.
func (w *recordWriter) find(p *piece) sessions.Match {
	if m, ok := w.s.versions[p.name]; ok {
		return m
	}
	return w.s.FindOwn(p.name, 0)
}

// addPiece adds a piece. isWhole is true if the piece is all of the record.
func (w *recordWriter) addPiece(p *piece, key sessions.Key, part int, isWhole bool) error {
	if err := w.converter.store(w.im.ctx, w.im.log, p.m.Parts); err != nil {
		return w.r.Located(err)
	}
	from := w.r.Origin(part)
	if isWhole {
		from = w.r.Whole(part)
	}
	if key.Digest != "" {
		from.Key = key.Digest
	}
	w.piece = p
	err := w.addPayload(key, from, p.m)
	w.piece = nil
	if err != nil {
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
	step := event.StepCompletion{Provider: provider, Model: w.r.text("model"), ResponseID: w.r.id, Usage: usage}
	from := w.r.Origin(usagePart)
	from.Key = key.Digest
	if err := w.addPayload(key, from, step); err != nil {
		return err
	}
	w.s.addUsage(w.r.id, usage)
	return nil
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

// addRaw adds the raw record.
func (w *recordWriter) addRaw() error {
	if w.isKnown() {
		return nil
	}
	if w.s.initialSeq > 0 && !w.s.told.begun && !w.r.isMessage() {
		w.isDeferred = true // a file without messages adds nothing to a session of the log
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
	if err == nil && w.piece != nil && w.piece.isContext {
		err = e.SetMetadata(mark.Context, true)
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
		move, err := w.r.Event(movePart, event.HeadMove{To: w.parent, Reason: w.reason()})
		if err != nil {
			return w.r.Located(err)
		}
		w.s.trail.Moved(w.s.Add(sessions.Key{Part: movePart}, w.r.at, move), w.parent)
	}
	at := w.r.at
	if w.piece != nil && w.piece.at.After(at) {
		at = w.piece.at
	}
	w.newest = w.s.Add(key, at, e)
	w.s.trail.Grow(w.newest, e.Type)
	w.added++
	return nil
}

// reason is the reason of a head_moved.
func (w *recordWriter) reason() string {
	if w.isAgain {
		return "the message was written again"
	}
	return "the session was rewound"
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
