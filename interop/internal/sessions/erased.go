package sessions

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/records"
)

// erasures finds out whether a new record of a file may be an erased one. A record without
// an id of its own is recognized as the erased one by its place only. So each erased event
// must be found by a record of the file before the session gets a new record without an id.
// In a new session, the messages around a record tell a copy from another session.
type erasures struct {
	allowed bool // the import stores such records anyway
	// added are the new records without ids, one for each type.
	added map[event.Type]records.Origin
	// twins are the erased messages of other sessions; nil to look for none.
	twins *twins
	last  []words       // of the newest messages
	count int           // of messages
	next  *surroundings // the next record may be a copy of this erased message
	found *records.ErasedError
}

// note notes a new record with its key.
func (x *erasures) note(session string, k *Key, e *event.Event) {
	if x.allowed || k.Part != 0 || !isContent(e.Type) {
		return
	}
	if x.twins != nil {
		x.compare(session, e)
	}
	if _, had := x.added[e.Type]; had || Drawn(k.Own) {
		return
	}
	if x.added == nil {
		x.added = map[event.Type]records.Origin{}
	}
	x.added[e.Type] = originOf(e)
}

// compare compares the newest messages with the messages around erased ones.
func (x *erasures) compare(session string, e *event.Event) {
	if x.next != nil {
		x.copyOf(session, x.next, e)
	}
	w, ok := wordsOf(e)
	if !ok {
		return
	}
	x.last = newest(x.last, w)
	x.count++
	x.next = find(x.twins.before, x.last, session)
	if s := find(x.twins.after, x.last, session); s != nil && x.count > len(s.messages) {
		x.copyOf(session, s, e)
	}
}

// copyOf notes that the file may have a copy of an erased message.
func (x *erasures) copyOf(session string, s *surroundings, e *event.Event) {
	if o := originOf(e); x.found == nil {
		x.found = &records.ErasedError{Session: session, In: s.session, Event: s.seq, Source: o.Source, Line: o.Line, Offset: o.Offset}
	}
}

// diverges notes that the record after an erased one is new, although the session has
// later records that the file has not had: then the erased record may be another one.
func (x *index) diverges(k *Key) {
	if k.Part != 0 || Drawn(k.Own) || !x.isErased[x.last] || !x.matched.has(x.last) {
		return
	}
	for seq := x.last + 1; seq < x.digested.end(); seq++ {
		if x.digested.has(seq) && !x.matched.has(seq) {
			x.matched.remove(x.last)
			return
		}
	}
}

// lost is an erased event that no record of the file has found, and that a new record of
// one of the types may be; 0 if there is none.
func (x *index) lost(added map[event.Type]records.Origin) (seq int64, o records.Origin) {
	for i := range x.redacted {
		e := &x.redacted[i]
		if !e.counted || e.seq < x.first || x.matched.has(e.seq) {
			continue
		}
		for t, origin := range added {
			if mayBe(t, e.shape.Types[0]) && (seq == 0 || origin.Offset < o.Offset) {
				seq, o = e.seq, origin
			}
		}
	}
	return seq, o
}

// mayBe reports whether a record of one type can have become an event of another type, with
// another version of the file.
func mayBe(t, erased event.Type) bool {
	return t == erased || isContent(t) && isContent(erased) && (isTalk(t) || isTalk(erased))
}

// isContent reports whether an event is a message or a raw record.
func isContent(t event.Type) bool { return isTalk(t) || strings.Contains(string(t), ":") }

func isTalk(t event.Type) bool {
	switch t.Name() {
	case event.MessageAdded, event.ContextAdded, event.CompactionTriggered:
		return true
	}
	return false
}

// checkErased returns the error of records that may be erased ones; nil if there is none.
func (s *Session) checkErased() error {
	if s.erasures.found != nil {
		return s.erasures.found
	}
	if len(s.erasures.added) == 0 {
		return nil
	}
	if seq, o := s.index.lost(s.erasures.added); seq > 0 {
		return &records.ErasedError{Session: s.ID, In: s.ID, Event: seq, Source: o.Source, Line: o.Line, Offset: o.Offset}
	}
	return nil
}
