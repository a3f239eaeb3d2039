package document

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// adding adds a session of a document to the session in the log.
type adding struct {
	*importer
	doc *Session
	s   *session
	// places are the items with a name; last is the item before.
	places map[string]place
	last   place
	late   map[int64]bool // seqs of late items
	now    time.Time      // the newest time of an item
	before int64          // the newest seq before the import
}

// place is an event of the session, and the chain up to it.
type place struct {
	seq   int64
	chain Chain
}

func newAdding(im *importer, doc *Session, s *session) *adding {
	return &adding{
		importer: im, doc: doc, s: s,
		places: map[string]place{}, last: place{seq: start}, late: map[int64]bool{}, before: s.Seq(),
	}
}

// run adds the start, the items and the rest of the totals, and moves the head.
func (a *adding) run() error {
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
		if err := a.item(it); err != nil {
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

// item adds an item, unless the session has it.
func (a *adding) item(it *Item) error {
	a.result.Records++
	if seq, ok := a.s.Find(it.Chain.key(a.s.ID)); ok && it.Chain != "" {
		a.settle(it, place{seq, it.Chain})
		a.result.Present++
		return nil
	}
	e, payload, err := a.event(it)
	if err != nil {
		return err
	}
	var content event.Digest
	if it.Chain == "" {
		if content, err = contentOf(&e); err != nil {
			return err
		}
	}
	parent := a.parent(it)
	here, key := a.identify(it, parent, content)
	if seq, ok := a.s.Find(key); ok {
		here.seq = seq
		a.settle(it, here)
		return a.known(it, seq, content)
	}
	if err := a.follow(it, parent.seq, key); err != nil {
		return err
	}
	here.seq = a.s.add(key, it, e, payload)
	if it.Name != "" && e.Type == event.MessageAdded {
		a.s.contents[here.seq] = content
	}
	a.settle(it, here)
	a.count(payload)
	return nil
}

func (a *adding) parent(it *Item) place {
	if it.After == "" {
		return a.last
	}
	return a.named(it.After)
}

// named is the place of the item with the name; the start if there is none.
func (a *adding) named(name string) place {
	if here, ok := a.places[name]; ok {
		return here
	}
	if seq, ok := a.s.Find(nameKey(a.s.ID, name)); ok {
		return place{seq: seq}
	}
	return place{seq: start}
}

func nameKey(session, name string) interop.Key { return interop.FixedKey(session, "item "+name) }

// identify returns the chain and the key of an item.
func (a *adding) identify(it *Item, parent place, content event.Digest) (place, interop.Key) {
	switch {
	case it.Name != "":
		return place{chain: parent.chain.then(event.DigestOf([]byte(it.Name)))}, nameKey(a.s.ID, it.Name)
	case it.Chain != "":
		return place{chain: it.Chain}, it.Chain.key(a.s.ID)
	}
	chain := parent.chain.then(content)
	return place{chain: chain}, chain.key(a.s.ID)
}

// settle notes the place of an item.
func (a *adding) settle(it *Item, here place) {
	a.last = here
	if it.Late {
		a.late[here.seq] = true
	}
	if it.Name != "" {
		a.places[it.Name] = here
	}
}

// known counts an item that the session has. An item with a name and new content
// is kept raw.
func (a *adding) known(it *Item, seq int64, content event.Digest) error {
	if before, ok := a.s.contents[seq]; it.Name == "" || !ok || before == content {
		a.result.Present++
		return nil
	}
	key := interop.RecordKey(a.s.ID, it.Rec.Digest, 0, changePart)
	if _, ok := a.s.Find(key); ok {
		a.result.Present++
		return nil
	}
	e, err := it.raw(a.format)
	if err != nil {
		return err
	}
	a.count(nil)
	a.s.add(key, &Item{At: it.At}, e, nil)
	return nil
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
func (a *adding) follow(it *Item, parent int64, key interop.Key) error {
	if a.onlyLateAfter(parent) {
		return nil
	}
	return a.move(it, interop.FixedKey(a.s.ID, "move "+string(key[:])), parent)
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
func (a *adding) move(it *Item, key interop.Key, parent int64) error {
	if !a.s.trail.Leaves(parent) || it.Late && a.s.trail.Holds(parent) {
		return nil
	}
	move, err := it.Rec.Event(it.Part, event.HeadMove{To: parent, Label: it.Label, Reason: "another branch"})
	if err != nil {
		return err
	}
	a.s.trail.Moved(a.s.Add(key, it.At, move), parent)
	return nil
}

// head moves the head to the document's, if the import added an event.
func (a *adding) head() error {
	newest := a.s.Seq()
	if a.doc.Head == "" || newest == a.before {
		return nil
	}
	it := Item{Rec: *a.doc.Rec, At: a.time(time.Time{})}
	return a.move(&it, interop.FixedKey(a.s.ID, fmt.Sprint("head ", newest)), a.named(a.doc.Head).seq)
}

// event makes the event of an item. The payload is nil if the event keeps the
// record raw.
func (a *adding) event(it *Item) (event.Event, event.Payload, error) {
	payload, err := a.payload(it)
	if payload != nil && err == nil {
		var e event.Event
		e, err = it.Rec.Event(it.Part, payload)
		if err == nil {
			return e, payload, nil
		}
	}
	if err != nil && !errors.Is(err, event.ErrInvalid) {
		return event.Event{}, nil, err
	}
	e, err := it.raw(a.format)
	return e, nil, err
}

// payload is the payload of an item; nil if it is kept raw.
func (a *adding) payload(it *Item) (event.Payload, error) {
	switch p := it.Payload.(type) {
	case event.Message:
		return p, parts.StoreBodies(p.Parts, parts.PutBlob(a.ctx, a.log))
	case event.Compaction:
		if it.Forgets != nil {
			return a.compaction(p, it)
		}
	}
	return it.Payload, nil
}

// raw makes an event that keeps the record of the item.
func (it *Item) raw(format string) (event.Event, error) {
	e, err := it.Rec.Raw(interop.RawType(format, cmp.Or(it.Kind, "other")))
	if err != nil || it.Part == 0 {
		return e, err
	}
	return e, e.SetMetadata(interop.OriginKey, it.Rec.Origin(it.Part))
}
