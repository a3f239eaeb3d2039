package codex

import (
	"context"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// The labels that later records are understood by.
const (
	providerLabel = "model_provider"
	modelLabel    = "model"
)

// session is the session that records are added to. What it knows it knows from
// events, so that a file that grows is imported as if it had been whole.
type session struct {
	*interop.Session
	// found: the log held the session. last is the newest of its events that
	// has a record of its own, passed the newest whose record this file holds so far.
	found        bool
	last, passed int64
	// shared are the events of the sessions that this one was forked from.
	shared shared
	seen   map[event.Digest]int

	started bool // it says what it was imported from
	titled  bool
	cwd     string
	labels  map[string]string

	path     path
	calls    map[string]string // names of the tools called, by call id
	group    string            // the response under way
	total    string            // the newest count of all tokens
	turns    map[string]ulid.ULID
	turn     openTurn
	children map[string]*child // by the ids of their calls
}

// openTurn is the turn under way.
type openTurn struct {
	id       ulid.ULID
	seq      int64
	steps    int
	prompted bool
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{
		seen: map[event.Digest]int{}, labels: map[string]string{}, calls: map[string]string{},
		turns: map[string]ulid.ULID{}, children: map[string]*child{},
	}
	opened, err := interop.OpenSession(ctx, log, id, func(e *event.Event) error { return s.remember(id, e) })
	if err != nil {
		return nil, err
	}
	s.Session, s.found = opened, !opened.New()
	return s, nil
}

// remember takes in an event that the log holds.
func (s *session) remember(id string, e *event.Event) error {
	if e.SessionID != id {
		s.shared.add(e)
	} else if isRecord, err := madeOfRecord(e); err != nil {
		return err
	} else if isRecord {
		s.last = e.Seq
	}
	if e.Type.Name() == event.SessionForked {
		s.forked()
	}
	p, err := payloadOf(e)
	if err != nil || p == nil {
		return err
	}
	s.took(p, e.ID, e.Seq)
	return nil
}

// madeOfRecord reports whether an event is a record's own.
func madeOfRecord(e *event.Event) (bool, error) {
	v, ok := e.MetadataValue(interop.OriginKey)
	if !ok {
		return false, nil
	}
	var origin interop.Origin
	err := json.Unmarshal(v, &origin)
	return origin.Part == ownPart, err
}

// payloadOf reads an event that the session learns from; nil if it is none.
func payloadOf(e *event.Event) (event.Payload, error) {
	if e.Redacted() {
		return nil, nil
	}
	switch e.Type.Name() {
	case event.MessageAdded, event.SessionStarted, event.SessionUpdated, event.TurnStarted, event.TurnCompleted,
		event.StepCompleted, event.HeadMoved, event.CompactionTriggered:
		return e.Payload()
	}
	if c, ok, err := event.Decode[event.Child](e); ok || err != nil {
		return c, err
	}
	return nil, nil
}

// took takes in an event with a payload.
func (s *session) took(p event.Payload, id ulid.ULID, seq int64) {
	switch p := p.(type) {
	case event.Session:
		s.says(&p)
	case event.Message:
		s.said(&p, seq)
	case event.TurnStart:
		s.turn, s.group = openTurn{id: id, seq: seq}, ""
		s.path.turns = append(s.path.turns, seq)
		s.turns[extraText(p.Extra, "turn_id")] = id
	case event.TurnCompletion:
		s.turn, s.group = openTurn{}, ""
	case event.StepCompletion:
		s.total, s.group = totalOf(p.Extra), ""
		s.turn.steps++
	case event.HeadMove:
		s.turn, s.group = openTurn{}, ""
		s.path.tree = append(s.path.tree, event.Move{Seq: seq, To: p.To})
	case event.Compaction:
		s.group = ""
	case event.Child:
		s.told(&p, seq)
	}
}

// says takes in what the session says of itself.
func (s *session) says(p *event.Session) {
	s.started = s.started || p.Source.Format == Name
	s.titled = s.titled || p.Title != ""
	if p.CWD != "" {
		s.cwd = p.CWD
	}
	for name, text := range p.Labels {
		if text != nil {
			s.labels[name] = *text
		}
	}
}

// forked forgets what is only the parent's.
func (s *session) forked() {
	s.started, s.titled, s.children = false, false, map[string]*child{}
}

// said takes in a message.
func (s *session) said(m *event.Message, seq int64) {
	s.group = ""
	if m.Role == event.Assistant {
		s.group = m.Group
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == event.ToolCallPart {
			s.calls[p.CallID] = p.Name
		}
	}
	n := note{seq: seq, role: m.Role, digest: digestOf(m), extra: canonical(m.Extra)}
	if isBoundary(m) {
		n.cut = seq
		if !s.turn.id.IsZero() && !s.turn.prompted && s.path.begins(s.turn.seq) {
			n.cut = s.turn.seq
		}
		s.turn.prompted = true
	}
	s.path.notes = append(s.path.notes, n)
}

// occurrence counts equal records of the session in this file, from 0.
func (s *session) occurrence(d event.Digest) int {
	n := s.seen[d]
	s.seen[d]++
	return n
}

// changes are the labels that would change.
func (s *session) changes(labels map[string]string) event.Labels {
	changed := event.Labels{}
	for name, text := range labels {
		if s.labels[name] != text {
			changed[name] = &text
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// extraText is a member of an extra that is a string; empty if it is none.
func extraText(extra jsontext.Value, name string) string {
	s, _ := rawjson.Text(member(extra, name))
	return s
}

// path is what a rollback and a compaction must know of what was said. Its
// events are in order of their seqs; what the head moved away from is among them.
type path struct {
	notes []note
	turns []int64 // seqs of turn_started
	tree  event.Tree
}

// note is a message.
type note struct {
	seq    int64
	role   event.Role
	digest event.Digest
	extra  string
	// cut is, of a prompt, the first event of its turn; 0 for other messages.
	cut int64
}

// active is the active path, up to whatever event is the newest.
func (p *path) active() event.Path { return p.tree.Path(math.MaxInt64) }

// messages are those on the active path.
func (p *path) messages() (active []note) {
	on := p.active()
	for _, n := range p.notes {
		if on.Has(n.seq) {
			active = append(active, n)
		}
	}
	return active
}

// begins reports whether a turn begins with its next prompt, and not with what a
// conversation begins with.
func (p *path) begins(turn int64) bool {
	on := p.active()
	for _, n := range slices.Backward(p.notes) {
		if n.cut > 0 && on.Has(n.seq) {
			return true
		}
	}
	n := len(p.notes)
	return n == 0 || p.notes[n-1].seq < turn
}

// turnCount is how many turns the active path has.
func (p *path) turnCount() (count int) {
	on := p.active()
	for _, seq := range p.turns {
		if on.Has(seq) {
			count++
		}
	}
	return count
}
