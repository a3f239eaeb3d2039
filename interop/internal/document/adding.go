package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// The kinds of events of an item, for their keys.
const (
	ownPart    = iota // the item's own event
	movePart          // head_moved before it
	changePart        // the item as it is after a change
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	format string
	file   File
	result interop.Result
	held   *Session // pieces of a session; nil if there are none
	// stopped are sessions in whose place the log has others.
	stopped []error
}

// all adds sessions.
func (im *importer) all(sessions []Session) error {
	for i := range sessions {
		err := im.session(&sessions[i])
		if errors.Is(err, interop.ErrHistory) {
			im.stopped = append(im.stopped, err)
		} else if err != nil {
			return errors.Join(append(im.stopped, err)...)
		}
	}
	return nil
}

// adding is a session of the document on its way into one of the log.
type adding struct {
	*importer
	doc *Session
	s   *session
	// at are the seqs of items by their names, said what was said up to them.
	at   map[string]place
	last place
	// late are the seqs of items that may come late.
	late map[int64]bool
	// now is the time of the newest item that has one.
	now time.Time
	// found is how many events the log had.
	found int64
}

// place is where an item is in the session.
type place struct {
	seq  int64
	said event.Digest // all up to it
}

// session adds a session. One without items is held until something was said,
// unless it is over.
func (im *importer) session(doc *Session) error {
	if err := cmp.Or(doc.Refused, event.CheckSessionID(doc.ID)); err != nil {
		im.result.Records++
		im.result.Reject(doc.Rec.Reject(err))
		return nil
	}
	im.result.Records += doc.Held
	im.result.Skipped += doc.Held
	if len(doc.Items) == 0 && !doc.Over {
		im.result.Records++
		im.result.Skipped++
		return nil
	}
	s, err := openSession(im.ctx, im.log, doc.ID)
	if err != nil {
		return err
	}
	a := adding{importer: im, doc: doc, s: s, at: map[string]place{}, late: map[int64]bool{}, last: place{seq: start}, found: s.Seq()}
	if !s.From(im.format) {
		return doc.Rec.Conflict(doc.ID, "the session was not imported from "+im.format)
	}
	im.result.Touch(doc.ID)
	if err := a.run(); err != nil {
		s.Drop()
		im.result.Events += s.Written()
		return doc.Rec.Located(err)
	}
	err = s.Flush(im.ctx)
	im.result.Events += s.Written()
	return err
}

// run adds the start, the items, and what they took.
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
	if err := a.spend(); err != nil {
		return err
	}
	return a.head()
}

// empty counts the record of a session without items.
func (a *adding) empty() {
	a.result.Records++
	if a.found > 0 {
		a.result.Present++
	} else {
		a.result.Imported++
	}
}

// head moves the head to where the document has it, if something was added.
func (a *adding) head() error {
	before := a.s.Seq()
	if a.doc.Head == "" || before == a.found {
		return nil
	}
	it := Item{Rec: *a.doc.Rec, At: a.time(time.Time{})}
	return a.move(&it, interop.FixedKey(a.s.ID, fmt.Sprint("head ", before)), a.named(a.doc.Head).seq)
}

// about begins the session, or tells what it does not know of itself.
func (a *adding) about() error {
	about := a.doc.About
	if about.Title == "" && a.s.title == "" {
		about.Title = a.firstWords()
	}
	known, err := a.s.settled(about.Extra)
	if err != nil {
		return err
	}
	it := Item{At: a.newest(), Payload: about}
	name := "session_started"
	if a.s.New() {
		it.At = a.begun()
		about.Source = event.SessionSource{
			Format: a.format, Version: a.doc.Version, Path: a.doc.Rec.Origin(0).Source, SessionID: cmp.Or(a.doc.Own, a.doc.ID),
		}
	} else {
		titled := about.Title == "" || about.Title == a.s.title || a.s.erased
		if known && titled {
			return nil
		}
		about.State, about.Parent = event.SessionStateUpdated, event.SessionParent{}
		if known {
			about.Extra = nil
		}
		name = "about " + about.Title + string(event.DigestOf(about.Extra))
	}
	a.s.title = cmp.Or(about.Title, a.s.title)
	key := interop.FixedKey(a.s.ID, name)
	if _, ok := a.s.Find(key); ok {
		return nil
	}
	e, err := a.doc.Rec.Event(0, about)
	if err != nil {
		return err
	}
	_, err = a.s.add(key, &it, e)
	return err
}

// firstWords are the beginning of the first text of the user.
func (a *adding) firstWords() string {
	for i := range a.doc.Items {
		m, ok := a.doc.Items[i].Payload.(event.Message)
		if !ok || m.Role != event.User {
			continue
		}
		for _, p := range m.Parts {
			if title := interop.Title(p.Text); p.Type == event.TextPart && title != "" {
				return title
			}
		}
	}
	return ""
}

// item adds an item, unless the session has it.
func (a *adding) item(it *Item) error {
	a.result.Records++
	parent := a.last
	if it.After != "" {
		parent = a.named(it.After)
	}
	e, raw, err := a.event(it)
	if err != nil {
		return err
	}
	says, err := saying(&e)
	if err != nil {
		return err
	}
	here, key := place{said: then(parent.said, says)}, interop.Key{}
	if it.Name == "" {
		key = interop.RecordKey(a.s.ID, here.said, 0, ownPart)
	} else {
		here.said = then(parent.said, event.DigestOf([]byte(it.Name)))
		key = interop.FixedKey(a.s.ID, "item "+it.Name)
	}
	seq, known := a.s.Find(key)
	if known {
		here.seq = seq
		a.settle(it, here)
		if before, heard := a.s.said[seq]; it.Name != "" && heard && before != says {
			return a.changed(it)
		}
		a.result.Present++
		return nil
	}
	if !a.behindLate(parent.seq) {
		if err := a.move(it, interop.FixedKey(a.s.ID, "move "+string(key[:])), parent.seq); err != nil {
			return err
		}
	}
	if here.seq, err = a.s.add(key, it, e); err != nil {
		return err
	}
	a.settle(it, here)
	a.count(raw)
	return nil
}

// named is where an item is: at the start if there is none of that name.
func (a *adding) named(name string) place {
	if here, ok := a.at[name]; ok {
		return here
	}
	if seq, ok := a.s.Find(interop.FixedKey(a.s.ID, "item "+name)); ok {
		return place{seq: seq}
	}
	return place{seq: start}
}

func (a *adding) settle(it *Item, here place) {
	a.last = here
	if it.Late {
		a.late[here.seq] = true
	}
	if it.Name != "" {
		a.at[it.Name] = here
	}
}

func (a *adding) count(raw bool) {
	if raw {
		a.result.Raw++
	} else {
		a.result.Imported++
	}
}

// move moves the head where what is added next follows something else than the
// newest.
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

// behindLate reports whether nothing follows the event at seq on the path but items
// that came late, which stand before what is next.
func (a *adding) behindLate(seq int64) bool {
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

// changed keeps an item that the log has otherwise.
func (a *adding) changed(it *Item) error {
	key := interop.RecordKey(a.s.ID, it.Rec.Digest, 0, changePart)
	if _, ok := a.s.Find(key); ok {
		a.result.Present++
		return nil
	}
	e, err := it.raw(a.format)
	if err != nil {
		return err
	}
	a.result.Raw++
	_, err = a.s.add(key, &Item{At: it.At}, e)
	return err
}

// event makes the event of an item. raw says that it keeps the record as it is.
func (a *adding) event(it *Item) (e event.Event, raw bool, err error) {
	if m, ok := it.Payload.(event.Message); ok {
		if err := parts.Settle(m.Parts, parts.Keep(a.ctx, a.log)); err != nil {
			return e, false, err
		}
	}
	payload, err := a.payload(it)
	if payload != nil && err == nil {
		e, err = it.Rec.Event(it.Part, payload)
		if err == nil || !errors.Is(err, event.ErrInvalid) {
			return e, false, err
		}
	}
	if err == nil || errors.Is(err, event.ErrInvalid) {
		e, err = it.raw(a.format)
	}
	return e, true, err
}

// payload is what an item becomes; nil if it is kept raw.
func (a *adding) payload(it *Item) (event.Payload, error) {
	c, ok := it.Payload.(event.Compaction)
	if !ok || it.Forgets == nil {
		return it.Payload, nil
	}
	return a.compaction(c, it)
}

func (it *Item) raw(format string) (event.Event, error) {
	return it.Rec.Raw(interop.RawType(format, cmp.Or(it.Kind, "other")))
}

// spend adds what all of it took and single messages do not tell. Where they
// cannot tell any more, nothing is known of the rest.
func (a *adding) spend() error {
	if a.s.untold {
		return nil
	}
	rest, ok := less(a.doc.Spent, a.s.taken())
	if !ok || !a.s.trail.Holds(a.last.seq) {
		return nil
	}
	e, err := a.doc.Rec.Event(0, event.StepCompletion{Model: rest.Model, Agent: rest.Agent, Usage: rest.Usage})
	if err != nil {
		return err
	}
	key := interop.RecordKey(a.s.ID, then(a.last.said, event.DigestOf(e.Data)), 0, ownPart)
	if _, ok := a.s.Find(key); ok {
		return nil
	}
	_, err = a.s.add(key, &Item{At: a.time(time.Time{}), Cost: rest.Cost}, e)
	return err
}
