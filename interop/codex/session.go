package codex

import (
	"context"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// The labels that apply to later records.
const (
	providerLabel = "model_provider"
	modelLabel    = "model"
)

// session is the session of the file. Its state comes from its events only. So a file
// that grows gives the same events as the whole file.
type session struct {
	*sessions.Session
	// existed: the log had the session. last is the seq of its newest event with a
	// record, lastRead the seq of the newest event whose record was read from this file.
	existed        bool
	last, lastRead int64
	// ancestry has the events of the sessions that this session was forked from.
	ancestry ancestry
	first    int64 // seq of the first event of its own

	hasSource   bool // an event has its source
	lacksHeader bool // its first file had no readable header
	hasTitle    bool
	cwd         string
	labels      map[string]string

	path     path
	calls    map[string]string // names of tools, by call id
	group    string            // the current response
	total    string            // the newest total token count
	turns    map[string]ulid.ULID
	turn     openTurn
	review   string            // the request for a review that the next turn answers
	children map[string]*child // by call id
	tasks    map[string]string // names of sub-agents, by call id
}

// openTurn is the current turn.
type openTurn struct {
	id       ulid.ULID
	seq      int64
	steps    int
	prompted bool
}

// openSession opens a session of the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{
		labels: map[string]string{}, calls: map[string]string{},
		turns: map[string]ulid.ULID{}, children: map[string]*child{}, tasks: map[string]string{},
	}
	opened, err := sessions.Open(ctx, log, id, func(e *event.Event) error { return s.restore(id, e) })
	if err != nil {
		return nil, err
	}
	s.Session, s.existed = opened, !opened.New()
	s.IsMessage = func(raw event.Type) bool { return strings.HasPrefix(string(raw), formatName+":"+itemKind) }
	s.SkipInherited(s.first)
	if len(s.Records) > 0 {
		s.path.keepWritten(s.Records, s.first)
	}
	return s, nil
}

// restore indexes an event of the log.
func (s *session) restore(id string, e *event.Event) error {
	if e.SessionID == id && s.first == 0 {
		s.first = e.Seq
	}
	if e.SessionID != id {
		if err := s.ancestry.add(e); err != nil {
			return err
		}
	} else if isRecord, err := isOwnEvent(e); err != nil {
		return err
	} else if isRecord {
		s.last = e.Seq
	}
	if e.Type.Name() == event.SessionForked {
		s.resetForFork()
	}
	if _, ok := e.MetadataValue(mark.NoHeader); ok && e.SessionID == id {
		s.lacksHeader = true
	}
	p, err := payloadOf(e)
	if err != nil || p == nil {
		return err
	}
	s.index(p, e.ID, e.Seq)
	return nil
}

// isOwnEvent reports whether a record became the event itself, and not a following
// event.
func isOwnEvent(e *event.Event) (bool, error) {
	v, ok := e.MetadataValue(records.OriginKey)
	if !ok {
		return false, nil
	}
	_, following, err := rawjson.Lookup(v, "part")
	return !following, err
}

// payloadOf decodes an event that the session indexes; nil for other events.
func payloadOf(e *event.Event) (p event.Payload, err error) {
	if c, ok, err := keptChild(e); ok || err != nil {
		return c, err
	}
	if e.Redacted() {
		return nil, nil
	}
	switch e.Type.Name() {
	case event.MessageAdded, event.SessionStarted, event.SessionUpdated, event.TurnStarted, event.TurnCompleted,
		event.StepCompleted, event.HeadMoved, event.CompactionTriggered, event.ExternalInput:
		return e.Payload()
	}
	return nil, nil
}

// keptChild decodes a child event, which may be redacted.
func keptChild(e *event.Event) (c event.Child, ok bool, err error) {
	if !e.Redacted() {
		return event.Decode[event.Child](e)
	}
	if !strings.HasPrefix(string(e.Type.Name()), "child_") {
		return c, false, nil
	}
	c, err = event.DecodeKept[event.Child](e)
	return c, true, err
}

// index updates the state from a payload.
func (s *session) index(p event.Payload, id ulid.ULID, seq int64) {
	switch p := p.(type) {
	case event.Session:
		s.indexSession(&p)
	case event.Message:
		s.indexMessage(&p, seq)
	case event.External:
		if s.turn.id.IsZero() {
			s.review = p.InputID
		}
	case event.TurnStart:
		s.turn, s.group, s.review = openTurn{id: id, seq: seq}, "", ""
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
		s.indexChild(&p, seq)
	}
}

// indexSession indexes a session_started or session_updated.
func (s *session) indexSession(p *event.Session) {
	s.hasSource = s.hasSource || p.Source.Format == formatName
	s.hasTitle = s.hasTitle || p.Title != "" && p.Labels["forked_from"] == nil // a fork starts with the title of its parent
	if p.CWD != "" {
		s.cwd = p.CWD
	}
	for name, text := range p.Labels {
		if text != nil {
			s.labels[name] = *text
		}
	}
}

// resetForFork drops the state of the parent that a fork does not inherit.
func (s *session) resetForFork() {
	s.hasSource, s.hasTitle, s.children = false, false, map[string]*child{}
}

// indexMessage indexes a message.
func (s *session) indexMessage(m *event.Message, seq int64) {
	s.group = ""
	if m.Role == event.Assistant {
		s.group = m.Group
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == event.ToolCallPart {
			s.calls[p.CallID] = p.Name
		}
		s.indexTask(&m.Parts[i])
	}
	n := pathMessage{seq: seq, role: m.Role, digest: digestOf(m), extra: canonical(m.Extra)}
	if isRollbackPoint(m) {
		n.turnStart = seq
		if !s.turn.id.IsZero() && !s.turn.prompted && s.path.promptBeginsTurn(s.turn.seq) {
			n.turnStart = s.turn.seq
		}
		s.turn.prompted = true
	}
	s.path.messages = append(s.path.messages, n)
}

// changes returns the labels that differ from the current labels; nil if none do.
func (s *session) changes(labels map[string]string) map[string]*string {
	changed := map[string]*string{}
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
