package gemini

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/titles"
	"github.com/convlog/convlog/interop/internal/parts"
)

// setting is the list of messages of a $set.
type setting struct {
	all      []*record // the messages
	pieces   [][]piece // of the messages
	question string    // the first words of the user
	context  bool      // all messages are context
}

// setting converts the list of messages of a $set; nil if the record is none.
func (c *converter) setting(r *record) (*setting, error) {
	set, err := parts.Open(r.change())
	if err != nil {
		return nil, nil //nolint:nilerr // the record is kept raw
	}
	messages := set.Peek("messages")
	if messages.Kind() != '[' {
		return nil, nil
	}
	elements, err := rawjson.Elements(messages)
	if err != nil {
		return nil, err
	}
	s := &setting{context: true}
	for _, v := range elements {
		rec := r.Record
		rec.Value, rec.Digest, rec.Size, rec.Key = v, event.DigestOf(v), int64(len(v)), ""
		m, err := readRecord(rec)
		if err != nil || !m.isMessage() {
			continue
		}
		pieces, err := c.pieces(&m)
		if err != nil {
			return nil, err
		}
		for i := range pieces {
			pieces[i].repeats = true
		}
		s.all, s.pieces = append(s.all, &m), append(s.pieces, pieces)
		if s.context = s.context && m.isContext(); s.question == "" && !m.isContext() {
			s.question = questionOf(&m, pieces)
		}
	}
	return s, nil
}

// questionOf returns the words of a user.
func questionOf(r *record, pieces []piece) string {
	if r.kind != "user" || r.isContext() {
		return ""
	}
	for i := range pieces {
		if p := &pieces[i]; p.m.Role == event.User {
			return p.m.Text()
		}
	}
	return ""
}

// addChange adds the event of a $set: messages, a summary, or the raw record.
func (w *recordWriter) addChange() error {
	list, err := w.converter.setting(w.r)
	if err != nil {
		return w.r.Located(err)
	}
	if list != nil {
		return w.addSetting(list)
	}
	if w.isKnown() {
		return nil
	}
	set, _ := parts.Open(w.r.change()) // an object
	title := titles.Of(set.Maybe("summary"))
	if title == "" {
		return w.addRaw()
	}
	return w.addPayload(w.key(), w.r.Whole(ownPart), event.Session{Updated: true, Title: title, Extra: w.r.Value})
}

// addSetting adds the messages of a list that the session does not have yet, or a compaction
// if the list is another conversation.
func (w *recordWriter) addSetting(list *setting) error {
	t := &w.s.told
	if list.context && (t.begun || w.s.initialSeq > 0) {
		w.s.reset, w.isDeferred = list, true
		return nil
	}
	w.s.reset = nil
	how, last := t.compare(list.all, list.pieces)
	switch how {
	case continues:
		return w.addMessages(list)
	case rewinds:
		w.s.lastSeq = w.s.rewindTarget(t.messages[last+1].id)
		t.messages = t.messages[:last+1]
		return nil
	}
	t.messages = t.messages[:0]
	for i, r := range list.all {
		t.tell(r, list.pieces[i])
	}
	if w.isKnown() {
		return nil
	}
	p, err := w.replacement(list)
	if err != nil {
		return w.r.Located(err)
	}
	if w.withheld {
		return nil
	}
	return w.addPayload(w.key(), w.r.Whole(ownPart), p)
}

// addMessages adds the messages of a list that the session does not have yet.
func (w *recordWriter) addMessages(list *setting) error {
	of := w.r
	defer func() { w.r = of }()
	for i, r := range list.all {
		r.at = of.at
		w.r, w.withheld = r, false
		if err := w.addPieces(list.pieces[i]); err != nil {
			return err
		}
		w.s.lastSeq = max(w.s.lastSeq, w.newest)
	}
	return nil
}

// applyReset begins the conversation anew with context messages, before the message of the
// record.
func (w *recordWriter) applyReset() error {
	list := w.s.reset
	if list == nil {
		return nil
	}
	w.s.reset, w.s.told.messages = nil, nil
	w.s.lastSeq, w.parent = startSeq, startSeq
	if err := w.addMessages(list); err != nil {
		return err
	}
	w.parent = w.s.lastSeq
	return nil
}

// replacement returns a compaction to the messages of a list. It refers to messages that the
// session has by seq. If one of them is redacted, the record is withheld, because it
// repeats the message.
func (w *recordWriter) replacement(list *setting) (p event.Compaction, err error) {
	p = event.Compaction{Strategy: "replace", Replace: true, Extra: w.r.Value}
	has := map[int64]bool{} // a program can send a result twice
	for i := range list.all {
		for j := range list.pieces[i] {
			entry := w.compactionEntry(&list.pieces[i][j])
			if entry.Seq > 0 && has[entry.Seq] {
				continue
			}
			has[entry.Seq] = true
			p.Entries = append(p.Entries, entry)
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
	if m.Seq > 0 && w.s.says(m.Seq, p) {
		return event.CompactionEntry{Seq: m.Seq}
	}
	p.m.Extra = nil // the extra of the compaction has it
	return event.CompactionEntry{Message: &p.m}
}
