package codex

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// A fork that is imported without its parent owns the records that it copied: they count in the
// fork. If the parent, or another fork of it, is imported later, it has the same records as
// inherited events.

// owner is a session of the log that can own records of the file. The ancestry has the events
// that the session and the file can share.
type owner struct {
	ancestry
	// isDescendant says that the session has copies of the file's session: all records of the
	// file can be among them. Otherwise only the copies in the file can be.
	isDescendant bool
}

// findOwners finds the sessions that can own records of the file.
func (im *importer) findOwners() error {
	s := im.s
	if im.hasOwners {
		return nil
	}
	im.hasOwners = true
	from := append(im.originals(), s.CopiedFrom...)
	if s.New() {
		s.CopiedFrom = from
	}
	all, err := s.Relatives(im.ctx, append(from, s.ID)...)
	if err != nil {
		return err
	}
	if s.ancestry.events == nil { // no fork of them
		all = append(all, from...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, id := range all {
		o, err := openOwner(im.ctx, im.log, id, s.ID, slices.Contains(from, id))
		if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		im.owners = append(im.owners, o)
		if slices.ContainsFunc(o.events, func(e ancestorEvent) bool { return e.shape != nil }) {
			im.title = "" // of an erased prompt, perhaps
		}
	}
	s.KnowsErased = len(im.owners) > 0
	return nil
}

// originals are the sessions whose records the file begins with copies of: the parent, and its
// ancestors, whose headers are copied too.
func (im *importer) originals() (ids []string) {
	if !im.header.hasCopies() || im.isParentRemoved {
		return nil
	}
	ids = append(ids, im.header.forkedFrom)
	for i := range im.held {
		h := headerIn(im.held[i].Value)
		if h.id == "" {
			break
		}
		if h.id != im.header.id && !slices.Contains(ids, h.id) {
			ids = append(ids, h.id)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return event.CheckSessionID(id) != nil })
}

// openOwner reads a session that can own records of the file of another one; nil if the log lacks
// it. It is an original, or else only its copies count.
func openOwner(ctx context.Context, log *eventlog.Log, id, other string, isOriginal bool) (*owner, error) {
	o := &owner{}
	var begin copies
	opened, err := sessions.Open(ctx, log, id, func(e *event.Event) error {
		if isOriginal || begin.has(e) {
			return o.add(e)
		}
		return nil
	})
	if err != nil || opened.New() || !opened.From(formatName) {
		return nil, err
	}
	o.isDescendant = slices.Contains(opened.CopiedFrom, other)
	return o, nil
}

// copies finds the end of the copies that a session begins with.
type copies struct {
	header header // the id and the time only
	ended  bool
}

// has reports whether the next event is before the end.
func (c *copies) has(e *event.Event) bool {
	if c.header.id == "" {
		c.header = header{id: e.SessionID, at: e.Timestamp}
	}
	if turn, ok := turnOf(e); ok {
		c.ended = c.ended || c.header.ownTurn(turn, e.Timestamp)
	}
	return !c.ended
}

// turnOf is the id of the turn in an event that can begin a turn; empty if the event has none.
func turnOf(e *event.Event) (id string, ok bool) {
	var d struct {
		Extra   jsontext.Value `json:"extra"`
		Payload jsontext.Value `json:"payload"` // of a raw turn_context
	}
	switch e.Type.Name() {
	case event.TurnStarted, event.SessionUpdated, turnContext:
		_ = json.Unmarshal(e.Data, &d, jsontext.AllowInvalidUTF8(true)) // a redacted event has no data
		return cmp.Or(extraText(d.Extra, "turn_id"), extraText(d.Payload, "turn_id")), true
	}
	return "", false
}

// turnContext is the type of a turn_context without new settings.
var turnContext = records.RawType(formatName, "turn_context")

// findOwner finds the owner of the next record. withheld says that the owner's event is redacted.
func (im *importer) findOwner(l *line) (withheld bool) {
	im.isOwned = false
	if l.kind == metaKind {
		return false
	}
	for _, o := range im.owners {
		if !o.isDescendant && !im.inCopies() {
			continue
		}
		if m := o.find(l, im.shape(l)); m.Seq > 0 {
			im.isOwned, withheld = true, withheld || m.Withheld
		}
	}
	return withheld
}

// find finds the event of the next record, unless the event is inherited and has its content. The
// owner can lack records of the file. After a message that it lacks, no redacted event is the next record.
func (o *owner) find(l *line, shape func() sessions.Shape) sessions.Match {
	if o.diverged {
		shape = nil
	}
	m, at := o.ancestry.find(l, o.next, shape)
	if m.Seq == 0 {
		m, at = o.ancestry.find(l, 0, nil)
	}
	if m.Seq == 0 {
		o.diverged = o.diverged || l.kind == itemKind
		return m
	}
	o.next = max(o.next, at+1)
	if o.events[at].inherited && !m.Withheld {
		return sessions.Match{}
	}
	return m
}

// countsInParent reports whether all copies in the file count in the parent, because the session
// is a fork of it in the log, or because it was removed.
func (im *importer) countsInParent() bool { return im.s.ancestry.events != nil || im.isParentRemoved }
