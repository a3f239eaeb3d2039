package document

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/trail"
	"github.com/convlog/convlog/projection"
)

// start is the seq of the first event of a session.
const start = 1

// session is the session in the log.
type session struct {
	*interop.Session
	trail *trail.Trail
	path  string // the file of the first import
	// contents are the digests of the messages, by seq. It is empty if the document
	// has no items with names.
	contents    map[int64]event.Digest
	hasNames    bool
	compactions map[int64]event.Compaction // by seq
	usages      []usage
	titles      map[string]bool // all titles that the session had
	// settings are the digests of all settings that the session had: of the members of
	// the document around the items.
	settings map[event.Digest]bool
	// masked are the titles and settings that are stored with masks.
	masked []string
	// erased says that an event about the session was redacted: no import brings the
	// title or the settings back.
	erased bool
	// usageErased says that an event with usage was redacted.
	usageErased bool
}

// openSession opens a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string, doc *Session) (*session, error) {
	s := &session{
		trail: trail.New(), contents: map[int64]event.Digest{}, compactions: map[int64]event.Compaction{},
		titles: map[string]bool{}, settings: map[event.Digest]bool{},
		hasNames: slices.ContainsFunc(doc.Items, func(it Item) bool { return it.Name != "" }),
	}
	opened, err := interop.OpenSession(ctx, log, id, s.remember)
	s.Session = opened
	return s, err
}

// remember notes an event of the log.
func (s *session) remember(e *event.Event) error {
	if err := s.trail.Remember(e); err != nil {
		return err
	}
	if e.Redacted() {
		s.redacted(e)
		return nil
	}
	p, err := s.decode(e)
	if err != nil {
		return err
	}
	if about, ok := p.(event.Session); ok {
		if _, err := s.knows(about.Extra); err != nil {
			return err
		}
		if e.Masked() {
			s.masked = append(s.masked, about.Title, canonical(about.Extra))
		}
	}
	s.note(e.Seq, p, e.Cost)
	return nil
}

func (s *session) redacted(e *event.Event) {
	switch e.Type.Name() {
	case event.SessionStarted, event.SessionUpdated:
		s.erased = true
	case event.MessageAdded, event.StepCompleted:
		s.usageErased = true
	}
}

// decode decodes an event that note wants; any other payload is nil.
func (s *session) decode(e *event.Event) (p event.Payload, err error) {
	switch e.Type.Name() {
	case event.SessionStarted, event.SessionUpdated, event.CompactionTriggered, event.StepCompleted:
	case event.MessageAdded:
		if s.hasNames && !e.Masked() { // the content of a masked message is unknown
			s.contents[e.Seq], err = contentOf(e)
		}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.Payload()
}

// note notes the payload of an event of the session.
func (s *session) note(seq int64, p event.Payload, cost event.Cost) {
	u := usage{seq: seq, cost: cost}
	switch p := p.(type) {
	case event.Session:
		s.path = cmp.Or(s.path, p.Source.Path)
		if p.Title != "" {
			s.titles[p.Title] = true
		}
	case event.Compaction:
		s.compactions[seq] = p
		return
	case event.StepCompletion:
		u.usage = p.Usage
	case event.Message:
		u.usage = p.Usage
	}
	if u.cost != 0 || !u.usage.IsZero() {
		s.usages = append(s.usages, u)
	}
}

// knows reports whether the session had the settings before, and notes them. Empty
// settings are always known.
func (s *session) knows(settings jsontext.Value) (known bool, err error) {
	if s.erased || len(settings) == 0 {
		return true, nil
	}
	d, err := projection.CanonicalDigest(settings)
	if err != nil {
		return false, err
	}
	known = s.settings[d] || s.isMasked(canonical(settings))
	s.settings[d] = true
	return known, nil
}

// hadTitle reports whether the session had the title, perhaps with masks.
func (s *session) hadTitle(title string) bool { return s.titles[title] || s.isMasked(title) }

// canonical is JSON in one form; empty for a value that is empty or not JSON.
func canonical(value jsontext.Value) string {
	value = value.Clone()
	if value.Canonicalize() != nil {
		return ""
	}
	return string(value)
}

func (s *session) isMasked(text string) bool {
	return slices.ContainsFunc(s.masked, func(masked string) bool { return masked != "" && event.IsMaskOf(masked, text) })
}

// opensWith reports whether the session has the items up to the user's first
// message, or the first item if the user has none.
func (s *session) opensWith(items []Item) bool {
	first := slices.IndexFunc(items, func(it Item) bool {
		m, ok := it.Payload.(event.Message)
		return ok && m.Role == event.User
	})
	_, ok := s.Find(items[max(first, 0)].Chain.key(s.ID))
	return ok
}

// add adds an event to the active path.
func (s *session) add(key interop.Key, it *Item, e event.Event, p event.Payload) int64 {
	e.Cost = it.Cost
	seq := s.Add(key, it.At, e)
	s.trail.Grow(seq, e.Type)
	s.note(seq, p, e.Cost)
	return seq
}
