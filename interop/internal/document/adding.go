package document

import (
	"cmp"
	"errors"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The parts of events that accompany items, for their ids.
const (
	aboutPart  = 1 + iota // session_started, session_updated
	totalsPart            // the rest of the totals
	movePart              // head_moved
)

// adding adds a session of a document to the session in the log.
type adding struct {
	*importer
	doc  *Session
	s    *session
	keys keys
	// places are the seqs of the items with a name; last is the item before, and walk the
	// item that the next one is a child of.
	places     map[string]int64
	seqs       []int64 // of the items so far
	last, walk int64
	late       map[int64]bool // seqs of late items
	groups     map[int]string // by run
	now        time.Time      // the newest time of an item
	before     int64          // the newest seq before the import
	isCopy     bool           // another session owns the item, or the one before it
}

func newAdding(im *importer, doc *Session, s *session) *adding {
	a := &adding{
		importer: im, doc: doc, s: s, places: map[string]int64{}, last: start, walk: start,
		late: map[int64]bool{}, groups: map[int]string{}, before: s.Seq(),
	}
	late := s.tree.late
	s.tree.late = func(n *node) bool { return late(n) || a.late[n.seq] }
	return a
}

// run adds the start, the items and the rest of the totals, and moves the head.
func (a *adding) run() (err error) {
	if a.keys, err = keysOf(a.doc.Items, a.format); err != nil {
		return err
	}
	if err := a.about(); err != nil {
		return err
	}
	if len(a.doc.Items) == 0 {
		a.empty()
	}
	for i := range a.doc.Items {
		it := &a.doc.Items[i]
		if !it.At.IsZero() {
			a.now = it.At
		}
		it.At = a.time(it.At)
		if err := a.item(i, it); err != nil {
			return err
		}
		if a.s.Full() {
			if err := a.s.FlushAsync(a.ctx); err != nil {
				return err
			}
		}
	}
	if err := a.addTotals(); err != nil {
		return err
	}
	return a.head()
}

// empty counts the record of a session without items.
func (a *adding) empty() {
	a.result.Records++
	if a.before > 0 {
		a.result.Present++
	} else {
		a.result.Imported++
	}
}

// item adds the i-th item, unless the session has it.
func (a *adding) item(i int, it *Item) error {
	a.result.Records++
	parent := a.last
	if it.After != "" {
		parent = a.named(it.After)
		a.walk = parent
	}
	if m := a.find(i, it); m.Seq > 0 {
		a.settle(it, m.Seq)
		return a.known(i, it, m)
	}
	if done, err := a.leavesOut(i, it); done || err != nil {
		return err
	}
	payload, err := a.payload(it)
	if err != nil {
		return err
	}
	if err := a.follow(it, parent); err != nil {
		return err
	}
	key := sessions.Key{Own: it.Name, Digest: a.keys[i].key}
	e, payload, err := a.event(it, key, payload)
	if err != nil {
		return err
	}
	a.settle(it, a.s.add(key, it, e, payload))
	a.count(payload)
	return nil
}

// leavesOut looks for the owner of a new item, and leaves the item out if its original is
// redacted, or was removed.
func (a *adding) leavesOut(i int, it *Item) (bool, error) {
	if a.keys[i].key == "" {
		return false, nil
	}
	from, err := a.s.Elsewhere(a.ctx, sessions.Key{Own: it.Name, Digest: a.keys[i].key}, it.At)
	a.isCopy = from.Session != ""
	if !from.Withheld || err != nil {
		return false, err
	}
	if a.s.LeaveOut(from) {
		a.result.Imported++
	} else {
		a.result.Found(true)
	}
	return true, nil
}

// find finds the event of the i-th item.
func (a *adding) find(i int, it *Item) sessions.Match {
	if sessions.Drawn(it.Name) {
		m := a.s.FindOwn(it.Name, 0)
		if m.Seq > 0 {
			a.s.Skip(m.Seq)
		}
		return m
	}
	at := a.s.tree.at(a.walk)
	is := a.keys[i]
	var n *node
	switch {
	case it.Answer:
		n = a.s.answer(a.walk, is)
	case it.Anywhere || it.Aside || it.Name != "":
		n = a.s.tree.anywhere(at, is)
	default:
		n = a.s.tree.find(at, a.keys.from(i))
	}
	if n == nil {
		return sessions.Match{}
	}
	n.take(is)
	a.s.Skip(n.seq)
	return sessions.Match{Seq: n.seq, Withheld: n.redacted}
}

// answer finds the result of the call at seq.
func (s *session) answer(call int64, it *sought) *node {
	shape := it.shape()
	if len(shape.Results) == 0 {
		return nil
	}
	for _, n := range s.tree.results[shape.Results[0]] {
		if shape.Fits(&n.shape) && s.trail.Leads(n.seq, call) {
			return n
		}
	}
	return nil
}

// named is the seq of the item with the name; the start if there is none.
func (a *adding) named(name string) int64 {
	if seq, ok := a.places[name]; ok {
		return seq
	}
	if m := a.s.FindOwn(name, 0); m.Seq > 0 && sessions.Drawn(name) {
		return m.Seq
	}
	if n := a.s.tree.keys[nameKey(name)]; n != nil {
		return n.seq
	}
	return start
}

// settle notes the place of an item.
func (a *adding) settle(it *Item, seq int64) {
	a.last = seq
	a.seqs = append(a.seqs, seq)
	if !it.Answer && !it.Aside {
		a.walk = seq
	}
	if it.Late || it.Aside {
		a.late[seq] = true
	}
	if it.Name != "" {
		a.places[it.Name] = seq
	}
	if it.Run > 0 && a.groups[it.Run] == "" {
		a.groups[it.Run] = a.s.tree.at(seq).group
	}
}

// known counts an item that the session has. An item with a name and new content
// is kept raw.
func (a *adding) known(i int, it *Item, m sessions.Match) error {
	content := a.keys[i].key
	before := a.s.contents[m.Seq]
	if it.Name == "" && !it.Answer || m.Withheld || before == "" || content == "" || before == content {
		a.result.Found(m.Withheld)
		return nil
	}
	key, shape := a.changed(it)
	if m := a.s.FindAfter(m.Seq, key, func() sessions.Shape { return shape }); m.Seq > 0 {
		a.result.Found(m.Withheld)
		return nil
	}
	rec := it.Rec
	rec.Key = ""
	e, err := rec.Raw(shape.Types[0], it.Part)
	if err != nil {
		return err
	}
	a.count(nil)
	a.s.add(key, &Item{At: it.At}, e, nil)
	return nil
}

// changed is the key and the shape of an item with new content: a variant of its name.
func (a *adding) changed(it *Item) (sessions.Key, sessions.Shape) {
	return sessions.Key{Own: it.Name, Digest: it.Rec.Digest}, sessions.ShapeOf(nil, it.rawType(a.format))
}

// count counts a new item; the payload is nil if the item is kept raw.
func (a *adding) count(payload event.Payload) {
	if payload == nil {
		a.result.Raw++
	} else {
		a.result.Imported++
	}
}

// follow makes the event at parent the parent of the next event, the item's.
func (a *adding) follow(it *Item, parent int64) error {
	if a.onlyLateAfter(parent) {
		return nil
	}
	return a.move(it, parent)
}

// onlyLateAfter reports whether late items are all that comes after the event at
// seq on the active path. The next item follows them.
func (a *adding) onlyLateAfter(seq int64) bool {
	if len(a.late) == 0 || !a.s.trail.Holds(seq) {
		return false
	}
	for _, after := range a.s.trail.TalkSince(seq) {
		if after > seq && !a.late[after] {
			return false
		}
	}
	return true
}

// move moves the head to parent, unless the next event continues it anyway.
func (a *adding) move(it *Item, parent int64) error {
	if !a.s.trail.Leaves(parent) || (it.Late || it.Aside) && a.s.trail.Holds(parent) {
		return nil
	}
	move, err := it.Rec.Event(it.Part, event.HeadMove{To: parent, Label: it.Label, Reason: "another branch"})
	if err != nil {
		return err
	}
	a.s.trail.Moved(a.s.Add(sessions.Key{Part: movePart}, it.At, move), parent)
	a.s.tree.moved(parent)
	return nil
}

// head moves the head to the document's, if the import added an event.
func (a *adding) head() error {
	newest := a.s.Seq()
	if a.doc.Head == "" || newest == a.before {
		return nil
	}
	it := Item{Rec: *a.doc.Rec, At: a.time(time.Time{})}
	return a.move(&it, a.named(a.doc.Head))
}

// payload is the payload of a new item; nil if it is kept raw. It stores the bodies.
func (a *adding) payload(it *Item) (event.Payload, error) {
	switch p := it.Payload.(type) {
	case event.Message:
		return p, parts.StoreBodies(p.Parts, parts.PutBlob(a.ctx, a.log))
	case event.Compaction:
		if it.Forgets != nil || it.Drops != nil {
			return a.compaction(p, it)
		}
	}
	return it.Payload, nil
}

// event makes the event of an item. The payload is nil if the event keeps the
// record raw.
func (a *adding) event(it *Item, key sessions.Key, payload event.Payload) (event.Event, event.Payload, error) {
	if m, ok := payload.(event.Message); ok && it.Run > 0 {
		m.Group = cmp.Or(a.groups[it.Run], "run-"+a.s.NextID(key, it.At).String())
		payload = m
	}
	rec := it.Rec
	rec.Key = key.Digest
	if payload != nil {
		from := rec.Whole(it.Part)
		if it.Partial {
			from.Bytes, from.Digest = 0, ""
		}
		e, err := rec.EventOf(payload, from)
		if it.Context && err == nil {
			err = e.SetMetadata(mark.Context, true)
		}
		if a.isCopy && err == nil {
			err = e.SetMetadata(mark.Inherited, true)
		}
		if err == nil || !errors.Is(err, event.ErrInvalid) {
			return e, payload, err
		}
	}
	e, err := rec.Raw(it.rawType(a.format), it.Part)
	return e, nil, err
}

// rawType is the type of an event that keeps the record of the item.
func (it *Item) rawType(format string) event.Type {
	return records.RawType(format, cmp.Or(it.Kind, "other"))
}
