package document

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// An item of Session.List follows the item before it. If the log has no other talk than the
// items from the first one on, in their order, the import compares the two as it reads them,
// and appends the rest of the items: it keeps neither in memory. Any other session of the log
// has branches, or redacted events, or events of another program. Then the import
// collects the items, and a tree finds them.

// listFacts are facts about a list that an import needs before the items.
type listFacts struct {
	items         int
	words         string    // the first text that a person wrote
	first, newest time.Time // of the items with a time
}

// readList reads a list. An error rejects the record of the list.
func readList(list iter.Seq2[Item, error]) (f *listFacts, err error) {
	f = &listFacts{}
	for it, err := range list {
		if err != nil {
			return nil, err
		}
		f.items++
		if !it.At.IsZero() {
			f.first, f.newest = cmp.Or(f.first, it.At), it.At
		}
		if f.words == "" {
			f.words = wordsOf(&it)
		}
	}
	return f, nil
}

// line adds the items of a list to a session that has nothing else.
type line struct {
	*adding
	next  func() (Item, error, bool)
	ahead *Item // the next item; nil if it is not read yet
	ended bool
	known int // items that the session has
}

// errBranched ends the reading of a session that has something else than the items.
var errBranched = errors.New("the session is no line of the items")

// list imports the session of a list.
func (im *importer) list(doc *Session) error {
	err := im.line(doc)
	if !errors.Is(err, errBranched) {
		return err
	}
	whole := *doc
	whole.List = nil
	for it, err := range doc.List {
		if err != nil {
			return doc.Rec.Located(err)
		}
		whole.Items = append(whole.Items, it)
	}
	return im.session(&whole)
}

// line imports the session of a list, or returns errBranched.
func (im *importer) line(doc *Session) error {
	next, stop := iter.Pull2(doc.List)
	defer stop()
	l := line{adding: &adding{importer: im, doc: doc, groups: map[int]string{}}, next: next}
	s, err := openLine(im.ctx, im.log, doc.ID, l.compare)
	if err != nil {
		return err
	}
	l.s = s
	if !im.accepts(s, doc) {
		return doc.Rec.Conflict(s.ID, "the session was not imported from "+im.format)
	}
	im.result.Touch(s.ID)
	im.result.Records += l.known
	im.result.Present += l.known
	err = l.rest()
	if err != nil {
		s.Drop()
		err = doc.Rec.Located(err)
	} else {
		err = s.Flush(im.ctx)
	}
	im.result.Events += s.Written()
	return err
}

// openLine opens a session without a tree. compare is called with each event.
func openLine(ctx context.Context, log *eventlog.Log, id string, compare func(*event.Event) error) (*session, error) {
	s := newSession()
	opened, err := sessions.OpenLine(ctx, log, id, func(e *event.Event) error {
		if err := compare(e); err != nil {
			return err
		}
		return s.rememberAbout(e)
	})
	if s.Session = opened; opened != nil {
		opened.IsMessage = isMessage
	}
	s.line = true
	return s, err
}

// peek returns the next item; nil after the last one.
func (l *line) peek() (*Item, error) {
	if l.ahead != nil || l.ended {
		return l.ahead, nil
	}
	it, err, ok := l.next()
	if err != nil || !ok {
		l.ended = true
		return nil, err
	}
	if !it.At.IsZero() {
		l.now = it.At
	}
	it.At = l.time(it.At)
	l.ahead = &it
	return l.ahead, nil
}

// compare compares an event of the log with the next item.
func (l *line) compare(e *event.Event) error {
	switch e.Type.Name() {
	case event.HeadMoved, event.SessionForked:
		return errBranched
	}
	counted := sessions.IsCounted(e)
	switch {
	case e.Redacted() || e.Inherited() || isTalk(e.Type) && !counted:
		return errBranched
	case !counted:
		return nil
	}
	it, err := l.peek()
	if err != nil || it == nil {
		return err
	}
	key, err := it.key()
	if err != nil {
		return err
	}
	if key != records.DigestOf(e) {
		return errBranched
	}
	if it.Run > 0 && l.groups[it.Run] == "" {
		m, _, err := event.Decode[event.Message](e)
		if err != nil {
			return err
		}
		l.group(it.Run, m.Group)
	}
	l.ahead = nil
	l.known++
	return nil
}

// group notes the group of a run. Later items are of no earlier run.
func (l *line) group(run int, group string) {
	clear(l.groups)
	l.groups[run] = group
}

// rest adds the start of the session, and the items that it does not have.
func (l *line) rest() error {
	if err := l.about(); err != nil {
		return err
	}
	for {
		it, err := l.peek()
		if err != nil || it == nil {
			return err
		}
		l.ahead = nil
		if err := l.add(it); err != nil {
			return err
		}
		if l.s.Full() {
			if err := l.s.FlushAsync(l.ctx); err != nil {
				return err
			}
		}
	}
}

func (l *line) add(it *Item) error {
	l.result.Records++
	digest, err := it.key()
	if err != nil {
		return it.Rec.Located(err)
	}
	payload, err := l.payload(it)
	if err != nil {
		return err
	}
	key := sessions.Key{Digest: digest}
	e, payload, err := l.event(it, key, payload)
	if err != nil {
		return err
	}
	if m, ok := payload.(event.Message); ok && it.Run > 0 && l.groups[it.Run] == "" {
		l.group(it.Run, m.Group)
	}
	l.s.add(key, it, e, payload)
	l.count(payload)
	return nil
}

// listed checks the lists of a value before anything of it is imported.
func listed(all []Session) (err error) {
	for i := range all {
		if s := &all[i]; s.List != nil {
			if s.facts, err = readList(s.List); err != nil {
				return err
			}
		}
	}
	return nil
}
