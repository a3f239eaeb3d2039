package adk

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/convlog/convlog/event"
)

// handle is a session.Session: a copy of a stored session, and the events that were appended with it.
type handle struct {
	identity identity
	logID    string

	mu      sync.RWMutex
	tip     // where the next append is tried first
	events  []*session.Event
	state   map[string]any
	updated time.Time
}

// tip is the newest event of a session.
type tip struct {
	head  event.Head
	blank bool // the session has no state document: a redaction erased its first patch
}

func (h *handle) ID() string           { return h.identity.Session }
func (h *handle) AppName() string      { return h.identity.App }
func (h *handle) UserID() string       { return h.identity.User }
func (h *handle) State() session.State { return (*handleState)(h) }

func (h *handle) Events() session.Events {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return eventList(h.events)
}

func (h *handle) LastUpdateTime() time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.updated
}

// appended adds a stored event. The state of the handle also has the keys with the prefix temp:.
func (h *handle) appended(e *session.Event, head event.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head, h.updated = head, e.Timestamp
	if _, _, own := split(e.Actions.StateDelta); len(own) > 0 {
		h.blank = false
	}
	maps.Copy(h.state, e.Actions.StateDelta)
	h.events = append(h.events, withoutTemp(e))
}

// known is the tip that the next append expects.
func (h *handle) known() tip {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.tip
}

// withoutTemp returns e, or a copy of it without the state keys that are not stored.
func withoutTemp(e *session.Event) *session.Event {
	temporary := func(key string, _ any) bool { return strings.HasPrefix(key, session.KeyPrefixTemp) }
	delta := maps.Clone(e.Actions.StateDelta)
	maps.DeleteFunc(delta, temporary)
	if len(delta) == len(e.Actions.StateDelta) {
		return e
	}
	stripped := *e
	stripped.Actions.StateDelta = delta
	return &stripped
}

type eventList []*session.Event

func (l eventList) All() iter.Seq[*session.Event] { return slices.Values(l) }
func (l eventList) Len() int                      { return len(l) }

func (l eventList) At(i int) *session.Event {
	if i < 0 || i >= len(l) {
		return nil
	}
	return l[i]
}

// handleState is the session.State of a handle. Set changes the copy of the caller only, as in the services of ADK.
type handleState handle

func (s *handleState) Get(key string) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.state[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return value, nil
}

func (s *handleState) Set(key string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[key] = value
	return nil
}

func (s *handleState) All() iter.Seq2[string, any] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.All(maps.Clone(s.state))
}
