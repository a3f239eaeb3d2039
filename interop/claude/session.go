package claude

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// session is a session that records are added to.
type session struct {
	*interop.Session
	// side: the session of a sub-agent.
	side bool
	// found is how many events the log held; matched, that records of this file
	// are among them, or follow one.
	initialSeq int64
	matched    bool

	tree  *tree
	calls map[string]string // names of the tools called, by call id
	tasks []task            // calls of sub-agents
	// children are the sub-agents, by the ids of their calls.
	children map[string]*child
	// owed is the compaction whose summary is yet to come; nil if there is none.
	pending *pendingCompaction
	// passed is the newest event whose record this file holds so far.
	lastRead int64
	// call is the one that started the session, if it is a sub-agent's and known.
	call        string
	occurrences map[event.Digest]int
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{tree: newTree(), calls: map[string]string{}, children: map[string]*child{}, occurrences: map[event.Digest]int{}}
	opened, err := interop.OpenSession(ctx, log, id, s.restore)
	if err != nil {
		return nil, err
	}
	s.Session, s.initialSeq = opened, opened.Seq()
	return s, nil
}

// remember takes in an event that the log holds, as if it had been added now.
func (s *session) restore(e *event.Event) error {
	if to, ok, err := headMove(e); ok || err != nil {
		s.indexMove(e.Seq, to)
		return err
	}
	s.tree.extend(e.Seq)
	if e.Redacted() {
		return nil
	}
	if start, ok, err := event.Decode[event.Session](e); ok && err == nil && e.Type == event.SessionStarted {
		s.call = start.Parent.CallID
	}
	if c, ok, err := event.Decode[event.Child](e); ok || err != nil {
		s.indexChild(&c)
		return err
	}
	if m, ok, err := event.Decode[event.Message](e); ok || err != nil {
		if err == nil {
			s.indexMessage(&m, e)
		}
		return err
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

// said takes in a message that the log holds.
func (s *session) indexMessage(m *event.Message, e *event.Event) {
	f, err := factsOf(m.Extra)
	if err != nil || !f.isMessage() {
		s.indexCalls(m, e.Seq) // a message that this package did not import
		return
	}
	s.index(&f, f.treeLine(m.Role == event.Tool, m.Group), m, e, e.Seq)
}

// took takes in that a record became the event e at seq; m is the message that
// it is, if it is one.
func (s *session) index(f *facts, l line, m *event.Message, e *event.Event, seq int64) {
	switch {
	case f.isCompaction():
		s.expectSummary(f)
	case e.Type == event.MessageAdded || e.Type == event.CompactionTriggered && !f.isClearing():
		s.pending = nil
	}
	l.nonMessage = e.Type != event.MessageAdded
	s.tree.add(l, seq)
	if m != nil {
		s.indexCalls(m, seq)
	}
}

// moved takes in that the head was moved.
func (s *session) indexMove(seq, to int64) {
	s.pending = nil
	s.tree.moved(seq, to)
}

// called notes the calls of a message at seq.
func (s *session) indexCalls(m *event.Message, seq int64) {
	for _, call := range m.ToolCalls() {
		s.calls[call.CallID] = call.Name
		if t, ok := taskOf(call); ok {
			t.seq = seq
			s.tasks = append(s.tasks, t)
		}
	}
}

// occurrence counts equal records of the session in this file, from 0.
func (s *session) occurrence(d event.Digest) int {
	n := s.occurrences[d]
	s.occurrences[d]++
	return n
}

// rawRecord is the record in an event that is no message; ok is false when the
// event was not imported by this package.
func rawRecord(e *event.Event) (record jsontext.Value, ok bool) {
	if _, imported := e.MetadataValue(interop.OriginKey); !imported {
		return nil, false
	}
	switch e.Type {
	case event.CompactionTriggered, event.SessionUpdated:
		var data struct {
			Extra jsontext.Value `json:"extra"`
		}
		err := json.Unmarshal(e.Data, &data)
		return data.Extra, err == nil && len(data.Extra) > 0
	}
	return e.Data, len(e.Type) > len(Name) && e.Type[:len(Name)+1] == Name+":"
}

func headMove(e *event.Event) (to int64, ok bool, err error) {
	if e.Type != event.HeadMoved {
		return 0, false, nil
	}
	var data struct {
		To int64 `json:"to"`
	}
	err = json.Unmarshal(e.Data, &data)
	return data.To, true, err
}
