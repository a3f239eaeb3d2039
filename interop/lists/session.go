package lists

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
)

// session is a session that a conversation is added to.
type session struct {
	*interop.Session
	start int64  // the seq of session_started
	path  string // where it was imported from
	// tip is the newest event of the active path that is part of what is said.
	tip    int64
	titled bool
	// erased: what it says of itself was redacted, and is not to come back.
	erased   bool
	settings document.Settings
}

func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{settings: document.Settings{}}
	opened, err := interop.OpenSession(ctx, log, id, s.remember)
	s.Session = opened
	return s, err
}

// ours reports whether this package can add to the session.
func (s *session) ours() bool {
	return s.From(string(chatShape), string(responsesShape), string(anthropicShape))
}

// remember takes in an event that the log holds.
func (s *session) remember(e *event.Event) error {
	name := e.Type.Name()
	switch {
	case name == event.HeadMoved:
		to, err := e.Parent()
		s.tip = to
		return err
	case name == event.SessionStarted, name == event.SessionUpdated:
		if name == event.SessionStarted {
			s.start = e.Seq
		}
		if e.Redacted() {
			s.erased, s.titled = true, true
			return nil
		}
		about, _, err := event.Decode[event.Session](e)
		if err == nil {
			_, err = s.settled(about.Extra)
		}
		s.titled = s.titled || about.Title != ""
		s.path += about.Source.Path
		return err
	case e.Type.Scope() == event.PathScope && name != event.ProjectionSnapshotted:
		s.tip = e.Seq
	}
	return nil
}

// settled reports whether the session knows the settings, which it does from
// then on.
func (s *session) settled(settings jsontext.Value) (known bool, err error) {
	if s.erased {
		return true, nil
	}
	return s.settings.Know(settings)
}

// parent is the event that what follows the event at seq continues; seq is 0 for
// what begins the conversation.
func (s *session) parent(seq int64) int64 {
	if seq == 0 {
		return s.start
	}
	return seq
}

// follows reports whether what is added to the session continues the event at
// seq.
func (s *session) follows(seq int64) bool { return s.tip == seq || seq == 0 && s.tip == s.start }

// begins reports whether the session has what a conversation begins with: all up
// to what the user says first, or else its first element.
func (s *session) begins(c *conversation) (bool, error) {
	r, at := newReader(c), chain("")
	known := false
	for i := range c.elements {
		m, ok, err := r.message(c.elements[i].value)
		if err == nil {
			at, err = at.with(&c.elements[i], &m, ok)
		}
		if err != nil {
			return false, err
		}
		_, found := s.Find(at.key(s.ID, ownPart))
		if known = known || i == 0 && found; ok && m.Role == event.User {
			return found, nil
		}
	}
	return known, nil
}
