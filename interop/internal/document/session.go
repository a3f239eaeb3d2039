package document

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/interop/internal/sessions"
	"github.com/convlog/convlog/interop/internal/trail"
)

// start is the seq of the first event of a session.
const start = 1

// session is the session in the log.
type session struct {
	*sessions.Session
	trail *trail.Trail
	tree  *tree
	path  string // the file of the first import
	// contents are the keys of the messages, by seq.
	contents    map[int64]event.Digest
	compactions map[int64]event.Compaction // by seq
	usages      []usage
	totals      map[total]bool
	titles      map[string]bool // all titles that the session had
	// settings are the digests of all settings that the session had: of the members of
	// the document around the items.
	settings map[event.Digest]bool
	// masked are the titles and settings that are stored with masks.
	masked []string
	// usageErased says that an event with usage was redacted.
	usageErased bool
	// line says that the session has no tree, trail, contents and usages: see line.
	line bool
}

func newSession() *session {
	return &session{
		trail: trail.New(), tree: newTree(), contents: map[int64]event.Digest{}, compactions: map[int64]event.Compaction{},
		totals: map[total]bool{}, titles: map[string]bool{}, settings: map[event.Digest]bool{},
	}
}

// openSession opens a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string, doc *Session) (*session, error) {
	s := newSession()
	if doc.LateResults {
		s.tree.late = func(n *node) bool { return n.shape.Role == event.Tool }
	}
	opened, err := sessions.Open(ctx, log, id, s.remember)
	if s.Session = opened; opened != nil {
		opened.IsMessage = isMessage
	}
	s.tree.named = func(name string) int64 { return s.FindOwn(name, 0).Seq }
	return s, err
}

// messageKinds are the kinds of the records that become messages.
var messageKinds = []string{
	"message", "element", "user", "assistant", "tool", "part", "item", "item.completed", "step", "other",
	"MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation",
}

// isMessage reports whether a raw event is of a record that should have become a message.
func isMessage(raw event.Type) bool {
	_, kind, _ := strings.Cut(string(raw), ":")
	return slices.Contains(messageKinds, kind) || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// remember notes an event of the log.
func (s *session) remember(e *event.Event) error {
	if err := s.trail.Remember(e); err != nil {
		return err
	}
	if e.Redacted() {
		s.redacted(e)
		return s.tree.remember(e, nil)
	}
	p, err := s.decode(e)
	if err != nil {
		return err
	}
	if step, ok := p.(event.StepCompletion); ok && !sessions.IsCounted(e) {
		s.totals[totalOf(s.tree.here(), &step, e.Cost)] = true
	}
	if err := s.tree.remember(e, p); err != nil {
		return err
	}
	if about, ok := p.(event.Session); ok {
		if err := s.rememberSettings(e, &about); err != nil {
			return err
		}
	}
	if n := s.tree.here(); n.seq == e.Seq {
		s.contents[e.Seq] = n.key
	}
	s.note(e.Seq, p, e.Cost)
	return nil
}

// rememberAbout notes an event about the session, for a line.
func (s *session) rememberAbout(e *event.Event) error {
	about, ok, err := event.Decode[event.Session](e)
	if !ok || err != nil {
		return err
	}
	s.note(e.Seq, about, e.Cost)
	return s.rememberSettings(e, &about)
}

func (s *session) rememberSettings(e *event.Event, about *event.Session) error {
	if _, err := s.knows(about.Extra); err != nil {
		return err
	}
	if e.Masked() {
		s.masked = append(s.masked, about.Title, canonical(about.Extra))
	}
	return nil
}

func (s *session) redacted(e *event.Event) {
	switch e.Type.Name() {
	case event.MessageAdded, event.StepCompleted:
		s.usageErased = true
	}
}

// decode decodes an event that note wants; any other payload is nil.
func (s *session) decode(e *event.Event) (event.Payload, error) {
	switch e.Type.Name() {
	case event.SessionStarted, event.SessionUpdated, event.CompactionTriggered, event.StepCompleted, event.MessageAdded:
		return e.Payload()
	}
	return nil, nil
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
	if len(settings) == 0 {
		return true, nil
	}
	key, err := canonicalKey(settings)
	if err != nil {
		return false, err
	}
	d := event.DigestOf([]byte(key))
	known = s.settings[d] || len(s.masked) > 0 && s.isMasked(canonical(settings))
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
	return slices.ContainsFunc(s.masked, func(masked string) bool { return masked != "" && mark.IsMaskOf(masked, text) })
}

// opensWith reports whether the session has the items up to the user's first
// message, or the first item if the user has none.
func (s *session) opensWith(items []Item, format string) (bool, error) {
	first := slices.IndexFunc(items, func(it Item) bool {
		m, ok := it.Payload.(event.Message)
		return ok && m.Role == event.User
	})
	all, err := keysOf(items, format)
	if err != nil {
		return false, err
	}
	n := s.tree.at(0)
	for i := 0; i <= max(first, 0); i++ {
		ahead := all.from(i)
		if n = s.tree.find(n, ahead); n == nil || n.redacted && !s.tree.continues(n, ahead) {
			return false, nil
		}
	}
	return true, nil
}

// add adds the event of an item, or an event without an item, to the active path.
func (s *session) add(key sessions.Key, it *Item, e event.Event, p event.Payload) int64 {
	e.Cost = it.Cost
	seq := s.Add(key, it.At, e)
	if s.line {
		return seq
	}
	s.trail.Grow(seq, e.Type)
	if counted := key.Part == 0 && !sessions.Drawn(key.Own); counted || isTalk(e.Type) {
		n := &node{seq: seq, talk: isTalk(e.Type), counted: counted, key: key.Digest}
		n.setMessage(p)
		s.tree.add(n)
		s.contents[seq] = n.key
	} else {
		s.tree.skip()
	}
	s.note(seq, p, e.Cost)
	return seq
}
