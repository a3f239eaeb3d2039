package lists

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/parts"
)

// The kinds of events that an element has, for their keys.
const (
	ownPart  = iota // the element's own event
	movePart        // head_moved before it
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	file   file
	result interop.Result
	// lines is the conversation whose messages stand on the lines of the file;
	// nil if it has none.
	lines *conversation
	// others are the conversations that the log has other sessions in the place of.
	others []error
}

// adding is a conversation on its way into a session.
type adding struct {
	*importer
	c *conversation
	s *session
	r *reader

	chain chain
	// run is the group of the items that the next one may be a piece of, if it is
	// the assistant's.
	run string
	// spoke: the last item was a message of the assistant's.
	spoke bool
	// at is the seq of the element before; 0 before the first.
	at int64
	// now is the time of the newest element that has one.
	now time.Time
	// apart: an element was not in the session, so that all behind it are new.
	apart bool
}

// conversation imports a conversation.
func (im *importer) conversation(c *conversation) error {
	if len(c.elements) == 0 {
		im.result.Records++
		im.result.Skipped++
		return nil
	}
	s, err := im.open(c)
	if err != nil {
		return err
	}
	a := adding{importer: im, c: c, s: s, r: newReader(c)}
	first := a.first()
	if !s.ours() {
		return first.Conflict(s.ID, "the session was not imported from a list of messages")
	}
	im.result.Touch(s.ID)
	err = a.all()
	if err != nil {
		s.Drop()
		err = first.Located(err)
	} else {
		err = s.Flush(im.ctx)
	}
	im.result.Events += s.Written()
	return err
}

// open finds the session of a conversation, or prepares it. Where another file's
// conversation has the same id and begins otherwise, the id is not its alone, and
// the file names it.
func (im *importer) open(c *conversation) (*session, error) {
	if !c.ownID() {
		return openSession(im.ctx, im.log, im.file.session(c))
	}
	s, err := openSession(im.ctx, im.log, c.id)
	if err != nil || s.New() || !s.ours() || s.path == "" || s.path == c.elements[0].rec.Origin(0).Source {
		return s, err
	}
	same, err := s.begins(c)
	if err != nil || same {
		return s, err
	}
	return openSession(im.ctx, im.log, im.file.session(c))
}

// all adds the session's start, and each element.
func (a *adding) all() error {
	if err := a.about(); err != nil {
		return err
	}
	for i := range a.c.elements {
		e := &a.c.elements[i]
		m, ok, err := a.r.message(e.value)
		if err != nil {
			return err
		}
		if last := i == len(a.c.elements)-1; ok && last && m.Role == event.Assistant {
			a.c.ended(&m)
		}
		a.result.Records++
		if err := a.element(e, &m, ok); err != nil {
			return err
		}
		if a.s.Full() {
			if err := a.s.FlushAsync(a.ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended tells of the last message what is told of the response that it is in.
func (c *conversation) ended(m *event.Message) {
	if m.Usage.IsZero() {
		m.Usage, _ = usageOf(c.usage)
	}
	m.ResponseID = cmp.Or(m.ResponseID, c.answered)
}

// element adds an element, unless the session has it behind the one before. m is
// the message that it is, if it is one.
func (a *adding) element(e *element, m *event.Message, isMessage bool) error {
	next, err := a.chain.with(e, m, isMessage)
	if err != nil {
		return err
	}
	a.chain = next
	a.join(e, m, isMessage)
	if seq, ok := a.s.Find(a.key(ownPart)); ok && !a.apart {
		a.time(a.r.at)
		a.result.Present++
		a.at = seq
		return nil
	}
	return a.add(e, m, isMessage)
}

// join makes items of Responses that follow each other pieces of one message,
// which says something once. A list of another shape may go on with such items, so
// every message of the assistant begins a run.
func (a *adding) join(e *element, m *event.Message, isMessage bool) {
	if !isMessage || m.Role != event.Assistant {
		a.run, a.spoke = "", false
		return
	}
	o, err := parts.Open(e.value)
	speaks := err == nil && o.Has("role")
	if a.run == "" || speaks && a.spoke {
		a.run = a.chain.group()
	}
	a.spoke, m.Group = speaks, a.run
}

func (a *adding) key(part int) interop.Key { return a.chain.key(a.s.ID, part) }

// add adds an element, and before it what moves the head to the one before.
func (a *adding) add(e *element, m *event.Message, isMessage bool) error {
	ev, at, err := a.event(e, m, isMessage)
	if err != nil {
		return err
	}
	if !a.apart && !a.s.follows(a.at) {
		move, err := e.rec.Event(e.part, event.HeadMove{To: a.s.parent(a.at), Reason: "another list of messages"})
		if err != nil {
			return err
		}
		a.s.Add(a.key(movePart), at, move)
	}
	a.apart = true
	a.at = a.s.Add(a.key(ownPart), at, ev)
	a.s.tip = a.at
	return nil
}

// event makes the event of an element.
func (a *adding) event(e *element, m *event.Message, isMessage bool) (ev event.Event, at time.Time, err error) {
	at = a.time(a.r.at)
	if isMessage {
		if err := parts.Settle(m.Parts, parts.Keep(a.ctx, a.log)); err != nil {
			return ev, at, err
		}
		ev, err = e.rec.Event(e.part, *m)
		if err == nil || !errors.Is(err, event.ErrInvalidPayload) {
			a.result.Imported++
			return ev, at, err
		}
	}
	a.result.Raw++
	o, _ := parts.Open(e.value) // an element that is no object has no members
	kind := o.Maybe("type")
	if kind == "" {
		kind = "element"
	}
	raw := *e.rec
	raw.Value = e.value
	if ev, err = raw.Raw(interop.RawType(Name, kind)); err != nil {
		return ev, at, err
	}
	return ev, at, ev.SetMetadata(interop.OriginKey, e.rec.Origin(e.part))
}

// about begins the session, or tells what it does not know: other settings, or a
// title where it has none.
func (a *adding) about() error {
	known, err := a.s.settled(a.c.settings)
	if err != nil {
		return err
	}
	title := a.c.title
	if title == "" && !a.s.titled {
		title = a.title()
	}
	about := event.Session{Title: title}
	if !known {
		about.Extra = a.c.settings
	}
	name := "session_started"
	switch {
	case a.s.New():
		about.Extra = a.c.settings
		about.Source = event.SessionSource{Format: string(a.r.shape), Path: a.first().Origin(0).Source, SessionID: a.c.id}
	case known && (a.s.titled || title == ""):
		return nil
	default:
		about.State = event.SessionStateUpdated
		name = "title " + title + string(event.DigestOf(about.Extra))
	}
	e, err := a.first().Event(0, about)
	if err != nil {
		return err
	}
	seq := a.s.Add(interop.FixedKey(a.s.ID, name), a.begun(), e)
	if about.State != event.SessionStateUpdated {
		a.s.start = seq
	}
	return nil
}

// time is when an element was said: when it says, else when the one before it was,
// else when the conversation, or its file, says.
func (a *adding) time(own time.Time) time.Time {
	if !own.IsZero() {
		a.now = own
	}
	for _, t := range []time.Time{a.now, a.c.at} {
		if !t.IsZero() {
			return t
		}
	}
	return a.file.At
}

// begun is when the conversation began.
func (a *adding) begun() time.Time {
	if !a.c.at.IsZero() {
		return a.c.at
	}
	for i := range a.c.elements {
		if t := a.c.elements[i].time(); !t.IsZero() {
			return t
		}
	}
	return a.file.At
}

func (a *adding) first() *interop.Record { return a.c.elements[0].rec }

// title is the beginning of what the user says first.
func (a *adding) title() string {
	r := newReader(a.c)
	for _, e := range a.c.elements {
		m, ok, err := r.message(e.value)
		if ok && err == nil && m.Role == event.User {
			if title := interop.Title(m.Text()); title != "" {
				return title
			}
		}
	}
	return ""
}
