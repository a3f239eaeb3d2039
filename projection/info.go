package projection

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
)

// SessionInfo is what a session says of itself.
type SessionInfo struct {
	Title string `json:"title,omitzero"`
	Agent string `json:"agent,omitzero"`
	// CWD is the working directory.
	CWD    string            `json:"cwd,omitzero"`
	Labels map[string]string `json:"labels,omitzero"`
	// Source is what the session was imported from, Parent the run that started
	// it. A fork has neither.
	Source eventlog.SessionSource `json:"source,omitzero"`
	Parent eventlog.SessionParent `json:"parent,omitzero"`
	// Fork is where the session was forked; zero if it was not.
	Fork ForkInfo `json:"fork,omitzero"`
	// Started is the time of the session's first own event, Updated that of its
	// newest one; snapshots and other upkeep do not count.
	Started time.Time `json:"started,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// ForkInfo is where a session was forked from another.
type ForkInfo struct {
	Parent string `json:"parent,omitzero"`
	Seq    int64  `json:"seq,omitzero"`
	Label  string `json:"label,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// Info is what a session says of itself: session_started and the updates of it,
// whatever was rewound since. A fork inherits title, agent, working directory
// and labels.
var Info = Projection[SessionInfo]{
	Name: "info", Version: 1, Scope: eventlog.SessionScope, Apply: (*SessionInfo).apply, Digest: (*SessionInfo).digest,
}

func (s *SessionInfo) apply(e *eventlog.Event) error {
	if isUpkeep(e) {
		return nil
	}
	if s.Started.IsZero() {
		s.Started = e.Timestamp
	}
	s.Updated = e.Timestamp
	switch e.Type.Name() {
	case eventlog.SessionStarted, eventlog.SessionUpdated:
		return s.update(e)
	case eventlog.SessionForked:
		return s.fork(e)
	}
	return nil
}

func (s *SessionInfo) update(e *eventlog.Event) error {
	p, err := structure[eventlog.Session](e)
	if err != nil {
		return err
	}
	s.Title = or(p.Title, s.Title)
	s.Agent = or(p.Agent, s.Agent)
	s.CWD = or(p.CWD, s.CWD)
	s.Source = or(p.Source, s.Source)
	s.Parent = or(p.Parent, s.Parent)
	for name, text := range p.Labels {
		if text == nil {
			delete(s.Labels, name)
			continue
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[name] = *text
	}
	return nil
}

// fork keeps what a fork inherits.
func (s *SessionInfo) fork(e *eventlog.Event) error {
	s.Source, s.Parent, s.Started = eventlog.SessionSource{}, eventlog.SessionParent{}, e.Timestamp
	if isCopied(e) {
		return nil
	}
	f, _, err := e.Fork()
	s.Fork = ForkInfo{Parent: f.Parent, Seq: f.Seq, Label: f.Label, Reason: f.Reason}
	return err
}

// digest leaves out times, and other sessions.
func (s *SessionInfo) digest() (eventlog.Digest, error) {
	c := SessionInfo{Title: s.Title, Agent: s.Agent, CWD: s.CWD}
	if len(s.Labels) > 0 {
		c.Labels = s.Labels
	}
	body, err := json.Marshal(&c, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	return CanonicalDigest(body)
}

// or is a unless it is zero, then b.
func or[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}
