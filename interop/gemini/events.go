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

// The parts that a record's events have in their origins; those of calls and
// results come behind them.
const (
	ownPart     = iota // the record's own event
	movePart           // head_moved before it
	summaryPart        // the summary of a header
	usagePart          // tokens that came late
	piecePart          // further pieces of a message
)

// adding adds the events of a record to its session.
type adding struct {
	im *importer
	s  *session
	r  *record
	// follows is the seq that the first of them follows; 0 where they go on at the
	// head.
	follows int64
	// n counts equal records of the file before it.
	n int
	// newest is the seq of the newest of them, added how many the log did not
	// have, kept that one of these is the raw record.
	newest int64
	added  int
	kept   bool
}

// apply adds to the session what it does not have of a record yet.
func (im *importer) apply(s *session, r *record) error {
	a := adding{im: im, s: s, r: r, follows: s.last, n: s.seen[r.digest]}
	s.seen[r.digest]++
	if err := a.all(); err != nil {
		return err
	}
	switch {
	case a.added == 0:
		s.matched = true
		im.result.Present++
	case a.kept:
		im.result.Raw++
	default:
		im.result.Imported++
	}
	if s.Full() {
		return s.FlushAsync(im.ctx)
	}
	return nil
}

// all adds the events of the record.
func (a *adding) all() (err error) {
	last := &a.s.last
	switch {
	case a.r.members.Has("$rewindTo"):
		a.follows = a.s.rewound(a.r.text("$rewindTo"))
		*last = 0
		err = a.raw()
	case a.r.says():
		err = a.message()
	case a.r.set() != nil:
		err = a.change()
	default:
		err = a.raw()
	}
	*last = max(*last, a.newest)
	return err
}

// rewound is what is followed after a rewind to before a message.
func (s *session) rewound(id string) int64 {
	if seq, ok := s.before[id]; ok {
		return seq
	}
	return start
}

// message adds a message, or what has grown of it.
func (a *adding) message() error {
	if _, again := a.s.before[a.r.id]; !again {
		a.s.before[a.r.id] = a.s.last
	}
	c := converter{ctx: a.im.ctx, log: a.im.log}
	pieces, err := c.pieces(a.r)
	if err != nil {
		return a.r.Located(err)
	}
	known, redacted := a.known(pieces)
	if known > 0 {
		a.follows, a.s.matched = a.resumes(known), true
	}
	usage, changed := a.r.usage(), false
	if redacted || a.s.counted(a.r.id, usage) {
		usage = event.Usage{}
	}
	for i := range pieces {
		p := &pieces[i]
		if seq, ok := a.s.Find(a.key(p.name)); ok {
			changed = changed || !redacted && a.s.said[seq] != content(&p.m)
			a.newest = max(a.newest, seq)
			continue
		}
		if p.m.Role == event.Assistant {
			p.m.Usage, usage = usage, event.Usage{}
		}
		if err := a.put(a.key(p.name), part(i), p.m); err != nil {
			return err
		}
		a.s.heard(a.newest, &p.m)
	}
	return a.rest(usage, changed)
}

// known is the newest piece that the session has, 0 if it has none. redacted says
// that one of them was redacted, so that nothing is known of what has changed.
func (a *adding) known(pieces []piece) (newest int64, redacted bool) {
	for i := range pieces {
		if seq, ok := a.s.Find(a.key(pieces[i].name)); ok {
			newest = max(newest, seq)
			redacted = redacted || a.s.redacted[seq]
		}
	}
	return newest, redacted
}

// resumes is the seq that what has grown of a message follows: 0, the head, where
// the rest of it, up to the newest, is on the path.
func (a *adding) resumes(newest int64) int64 {
	if a.s.trail.Holds(newest) {
		return 0
	}
	return newest
}

// part numbers the pieces of a message.
func part(piece int) int {
	if piece == 0 {
		return ownPart
	}
	return piecePart + piece - 1
}

// rest adds tokens that came late, and keeps a message that changed.
func (a *adding) rest(usage event.Usage, changed bool) error {
	key := a.key(fmt.Sprint("usage ", a.r.id, tokens(usage)))
	if _, told := a.s.Find(key); !told && !usage.IsZero() {
		model := a.r.text("model")
		err := a.put(key, usagePart, event.StepCompletion{Provider: "google", Model: model, ResponseID: a.r.id, Usage: usage})
		if err != nil {
			return err
		}
		a.s.count(a.r.id, usage)
	}
	if changed {
		return a.raw()
	}
	return nil
}

// key is that of what the session has once.
func (a *adding) key(name string) interop.Key { return interop.FixedKey(a.s.ID, name) }

// change adds a change of the session: a summary, another history, or else the raw
// record.
func (a *adding) change() error {
	key := interop.RecordKey(a.s.ID, a.r.digest, a.n, ownPart)
	if seq, ok := a.s.Find(key); ok {
		a.newest = seq
		return nil
	}
	set, err := parts.Open(a.r.set())
	if err != nil {
		return a.raw()
	}
	if messages := set.Peek("messages"); messages.Kind() == '[' {
		p, err := a.replaced(messages)
		if err != nil {
			return a.r.Located(err)
		}
		return a.put(key, ownPart, p)
	}
	title := interop.Title(set.Maybe("summary"))
	if title == "" {
		return a.raw()
	}
	return a.put(key, ownPart, event.Session{State: event.SessionStateUpdated, Title: title, Extra: a.r.Value})
}

// replaced is a compaction: the messages that the model sees from here on. Those
// that the session has stand there by their seqs.
func (a *adding) replaced(messages jsontext.Value) (p event.Compaction, err error) {
	p = event.Compaction{Strategy: "replace", Replace: true, Extra: a.r.Value}
	c := converter{ctx: a.im.ctx, log: a.im.log}
	elements, err := rawjson.Elements(messages)
	if err != nil {
		return p, err
	}
	for _, v := range elements {
		r, err := read(interop.Record{Value: v})
		if err != nil || !r.says() {
			continue
		}
		pieces, err := c.pieces(&r)
		if err != nil {
			return p, err
		}
		for i := range pieces {
			p.Entries = append(p.Entries, a.entry(&pieces[i]))
		}
	}
	return p, nil
}

// entry refers to a piece of a message, if the session has it, or holds it.
func (a *adding) entry(p *piece) event.CompactionEntry {
	if seq, ok := a.s.Find(a.key(p.name)); ok && a.s.said[seq] == content(&p.m) {
		return event.CompactionEntry{Seq: seq}
	}
	p.m.Extra = nil // it stands in that of the compaction
	return event.CompactionEntry{Message: &p.m}
}

// raw keeps the record as it is.
func (a *adding) raw() error {
	key := interop.RecordKey(a.s.ID, a.r.digest, a.n, ownPart)
	if seq, ok := a.s.Find(key); ok {
		a.newest = max(a.newest, seq)
		return nil
	}
	e, err := a.r.Raw(interop.RawType(Name, a.r.kindName()))
	if err != nil {
		return a.r.Located(err)
	}
	a.kept = true
	return a.add(key, e)
}

// put adds an event of a payload. Where the log does not take it, the raw record
// is kept.
func (a *adding) put(key interop.Key, part int, p event.Payload) error {
	e, err := a.r.Event(part, p)
	if errors.Is(err, event.ErrInvalid) {
		return a.raw()
	}
	if err != nil {
		return a.r.Located(err)
	}
	return a.add(key, e)
}

// add adds an event, and before the record's first what moves the head there.
func (a *adding) add(key interop.Key, e event.Event) error {
	if reason := a.s.parts(); reason != "" {
		a.s.Drop()
		return a.r.Conflict(a.s.ID, reason)
	}
	if a.added == 0 && a.follows > 0 && a.s.trail.Leaves(a.follows) {
		move, err := a.r.Event(movePart, event.HeadMove{To: a.follows, Reason: "the session was rewound"})
		if err != nil {
			return a.r.Located(err)
		}
		key := interop.RecordKey(a.s.ID, a.r.digest, a.n, movePart)
		a.s.trail.Moved(a.s.Add(key, a.r.at, move), a.follows)
	}
	a.newest = a.s.Add(key, a.r.at, e)
	a.s.trail.Grow(a.newest, e.Type)
	a.added++
	return nil
}

// summary adds the summary of a header, if it titles the session anew.
func (im *importer) summary(s *session, r *record) error {
	title := interop.Title(r.text("summary"))
	key := interop.FixedKey(s.ID, "summary "+r.text("summary"))
	if _, ok := s.Find(key); ok || title == "" || title == s.title || s.erased {
		return nil
	}
	s.title = title
	a := adding{im: im, s: s, r: r}
	s.matched = true // by its header
	return a.put(key, summaryPart, event.Session{State: event.SessionStateUpdated, Title: title})
}
