package claude

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// session is a session of the file, with an index of its events: those in the log and
// those added by this import.
type session struct {
	*sessions.Session
	// side is true for the session of a sub-agent.
	side bool
	// initialSeq is the seq of the newest event that the log had when the session was
	// opened. matched is true after a record of this file is found among these events,
	// or follows one.
	initialSeq int64
	matched    bool

	tree   *tree
	titles titleState
	// rooted is true after a line without a parent, until the conversation goes on.
	// spoken is true if the conversation has a request, an answer or a result since it was
	// cleared.
	rooted, spoken bool
	calls          map[string]string // names of tools, by call id
	tasks          []task            // calls that start a sub-agent
	// early are the results that came before their calls, by call id.
	early map[string]answer
	// children are the sub-agents, by the ids of their calls.
	children map[string]*child
	// pending is the compaction that waits for its summary; nil if there is none.
	pending *pendingCompaction
	// forkedAt is the seq of the session_forked of a fork.
	forkedAt int64
	// lastRead is the seq of the newest event whose record was read from this file.
	lastRead int64
	// call is the id of the call that started the session; empty if unknown or not a
	// sub-agent.
	call string
	// seen is true after the first record of the session in this file.
	seen bool
}

// openSession opens a session of the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{tree: newTree(), calls: map[string]string{}, children: map[string]*child{}, early: map[string]answer{}, titles: titleState{summaries: map[string]string{}}}
	opened, err := sessions.Open(ctx, log, id, s.restore)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	s.tree.addWritten(s.Records)
	s.Program, s.KnowsErased = formatName, true
	s.IsMessage = func(raw event.Type) bool { return raw == formatName+":user" || raw == formatName+":assistant" }
	return s, nil
}

// restore indexes an event of the log as if this import had added it.
func (s *session) restore(e *event.Event) error {
	if to, ok, err := headMove(e); ok || err != nil {
		s.indexMove(e.Seq, to)
		return err
	}
	s.tree.extend(e.Seq)
	if e.Type.Name() == event.SessionForked {
		s.resetForFork()
		s.forkedAt = e.Seq
	}
	if c, ok, err := keptChild(e); ok || err != nil {
		s.indexChild(&c)
		return err
	}
	if e.Redacted() {
		return nil
	}
	if info, ok, err := event.Decode[event.Session](e); ok && err == nil {
		s.titles.any = s.titles.any || info.Title != ""
		if e.Type == event.SessionStarted {
			s.call = info.Parent.CallID
		}
	}
	if m, ok, err := event.Decode[event.Message](e); ok || err != nil {
		if err == nil {
			s.indexMessage(&m, e)
		}
		return err
	}
	if c, ok, err := event.Decode[event.Compaction](e); ok && err == nil && c.Strategy == clearStrategy {
		s.pending = nil
	}
	record, ok := rawRecord(e)
	if !ok {
		return nil
	}
	f, err := factsOf(record)
	if err != nil {
		return err
	}
	s.index(&f, f.treeLine(false, ""), nil, e, e.Seq)
	return nil
}

// resetForFork drops the state of the parent that a fork does not inherit.
func (s *session) resetForFork() {
	s.titles = titleState{summaries: map[string]string{}}
	s.tasks, s.children, s.early = nil, map[string]*child{}, map[string]answer{}
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

// indexMessage indexes a message of the log.
func (s *session) indexMessage(m *event.Message, e *event.Event) {
	f, err := factsOf(m.Extra)
	if err != nil || !f.isMessage() {
		s.indexCalls(m, e.Seq) // another program added the message
		return
	}
	s.index(&f, f.treeLine(m.Role == event.Tool, m.Group), m, e, e.Seq)
}

// index indexes the event e at seq, which a record became. m is the message of the
// event; nil if it has none.
func (s *session) index(f *facts, l line, m *event.Message, e *event.Event, seq int64) {
	switch {
	case f.isCompaction():
		s.expectSummary(f)
	case e.Type == event.MessageAdded || e.Type == event.CompactionTriggered && !f.isClearing():
		s.pending = nil
	}
	l.nonMessage = e.Type != event.MessageAdded
	s.titles.index(f, s.tree.node(f.LeafUUID), seq)
	s.indexRoot(f, m, e)
	s.tree.add(l, seq)
	if m != nil {
		s.indexEarly(f, m)
		s.indexCalls(m, seq)
	}
}

// indexEarly indexes the results of calls that have not come yet.
func (s *session) indexEarly(f *facts, m *event.Message) {
	if len(m.ToolResults()) == 0 {
		return
	}
	for _, a := range answersOf(f, m) {
		if _, called := s.calls[a.call]; !called {
			s.early[a.call] = a
		}
	}
}

// indexRoot notes whether the conversation begins anew with the record, or goes on. m is
// the message of the event e; nil if it has none.
func (s *session) indexRoot(f *facts, m *event.Message, e *event.Event) {
	isMessage := m != nil && e.Type == event.MessageAdded
	switch {
	case isMessage && (m.Role != event.User || !e.IsContext()):
		s.rooted, s.spoken = false, true
	case f.startsAfterClear() || isMessage && m.Role == event.User && isClear(m.Text()):
		s.spoken = s.spoken && !s.rooted && !f.HasNullParent
		s.rooted = false
	case f.HasNullParent && !f.IsSidechain && !f.isCompaction():
		s.rooted = true
	}
}

// clearsAll reports whether the record is the first of a new conversation in the session.
func (s *session) clearsAll(f *facts) bool {
	return s.spoken && (s.rooted || f.HasNullParent) && f.clears()
}

// indexMove indexes the head_moved at seq.
func (s *session) indexMove(seq, to int64) {
	s.pending = nil
	s.tree.moved(seq, to)
}

// indexCalls indexes the tool calls of the message at seq.
func (s *session) indexCalls(m *event.Message, seq int64) {
	for _, call := range m.ToolCalls() {
		s.calls[call.CallID] = call.Name
		if t, ok := taskOf(call); ok {
			t.seq = seq
			s.tasks = append(s.tasks, t)
		}
	}
}

// rawRecord returns the record of an event that is not a message; ok is false if the
// event was not imported by this package.
func rawRecord(e *event.Event) (record jsontext.Value, ok bool) {
	if _, imported := e.MetadataValue(records.OriginKey); !imported {
		return nil, false
	}
	switch e.Type {
	case event.CompactionTriggered, event.SessionUpdated:
		var data struct {
			Extra jsontext.Value `json:"extra"`
		}
		err := rawjson.Unmarshal(e.Data, &data)
		return data.Extra, err == nil && len(data.Extra) > 0
	}
	return e.Data, len(e.Type) > len(formatName) && e.Type[:len(formatName)+1] == formatName+":"
}

func headMove(e *event.Event) (to int64, ok bool, err error) {
	m, ok, err := event.Decode[event.HeadMove](e)
	return m.To, ok, err
}
