package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/line"
)

// Session is the payload of session_started and session_updated. An update changes
// only the members that are present: an empty title, agent or cwd changes nothing.
type Session struct {
	// Updated decides the event type: false is session_started, true is session_updated. It
	// is not part of the data.
	Updated bool `json:"-"`

	Title string `json:"title,omitzero"`
	Agent string `json:"agent,omitzero"`
	// CWD is the working directory.
	CWD string `json:"cwd,omitzero"`
	// Labels map a name to a text; nil, in an update, removes the name.
	Labels map[string]*string `json:"labels,omitzero"`
	Source SessionSource      `json:"source,omitzero"`
	// Parent is set in session_started only: the run that started this one.
	Parent SessionParent `json:"parent,omitzero"`
	// State is set in session_started only: the session has the state of a program, and no
	// conversation. Lists of sessions leave it out unless asked.
	State bool `json:"state,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// SessionSource is the source of an imported session.
type SessionSource struct {
	Format    string `json:"format,omitzero"`
	Version   string `json:"version,omitzero"`
	Path      string `json:"path,omitzero"`
	SessionID string `json:"session_id,omitzero"`
}

// SessionParent is the place in another session that a child belongs to.
type SessionParent struct {
	SessionID string    `json:"session_id,omitzero"`
	Seq       int64     `json:"seq,omitzero"`
	EventID   ulid.ULID `json:"event_id,omitzero"`
	CallID    string    `json:"call_id,omitzero"`
}

func (s *Session) setType(t Type) {
	s.Updated = t.Name() == SessionUpdated
}

// EventType is session_started or, of an update, session_updated.
func (s Session) EventType() Type {
	if s.Updated {
		return SessionUpdated
	}
	return SessionStarted
}

// Validate applies the rules of Session that need no other event.
func (s Session) Validate() error {
	if s.Updated && s.Parent != (SessionParent{}) {
		return fmt.Errorf("%w: parent belongs to session_started", ErrInvalidPayload)
	}
	if s.Updated && s.State {
		return fmt.Errorf("%w: state belongs to session_started", ErrInvalidPayload)
	}
	if !s.Updated {
		for name, text := range s.Labels {
			if text == nil {
				return fmt.Errorf("%w: labels: %q is removed before the session has it", ErrInvalidPayload, line.Clip(name))
			}
		}
	}
	return firstError(requireMin("parent.seq", s.Parent.Seq, 0), requireExtra(s.Extra))
}
