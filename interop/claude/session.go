package claude

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	found   int64
	matched bool

	tree  *tree
	calls map[string]string // names of the tools called, by call id
	tasks []task            // calls of sub-agents
	// passed is the newest event whose record this file holds so far.
	passed int64
	// call is the one that started the session, if it is a sub-agent's and known.
	call string
	seen map[eventlog.Digest]int
}

// task is a call that starts a sub-agent.
type task struct {
	id, prompt string
	seq        int64
}

// openSession finds a session in the log, or prepares a new one.
func openSession(ctx context.Context, log *eventlog.Log, id string) (*session, error) {
	s := &session{tree: newTree(), calls: map[string]string{}, seen: map[eventlog.Digest]int{}}
	opened, err := interop.OpenSession(ctx, log, id, s.remember)
	if err != nil {
		return nil, err
	}
	s.Session, s.found = opened, opened.Seq()
	return s, nil
}

// remember takes in an event that the log holds, as if it had been added now.
func (s *session) remember(e *eventlog.Event) error {
	if to, ok, err := headMove(e); ok || err != nil {
		s.tree.moved(e.Seq, to)
		return err
	}
	s.tree.grow(e.Seq)
	if e.Redacted() {
		return nil
	}
	if start, ok, err := e.Session(); ok && err == nil && e.Type == eventlog.SessionStarted {
		s.call = start.Parent.CallID
	}
	if m, ok, err := e.Message(); ok || err != nil {
		if err == nil {
			s.said(&m, e.Seq)
		}
		return err
	}
	record, ok := rawRecord(e)
	if !ok {
		return nil
	}
	var f facts
	if err := json.Unmarshal(record, &f); err != nil {
		return err
	}
	s.tree.add(f.line(false, ""), e.Seq)
	return nil
}

// said takes in a message at seq.
func (s *session) said(m *eventlog.Message, seq int64) {
	s.called(m, seq)
	var f facts
	if len(m.Extra) == 0 || json.Unmarshal(m.Extra, &f) != nil || !f.says() {
		return // a message that this package did not import
	}
	s.tree.add(f.line(m.Role == eventlog.Tool, m.Group), seq)
}

// occurrence counts equal records of the session in this file, from 0.
func (s *session) occurrence(d eventlog.Digest) int {
	n := s.seen[d]
	s.seen[d]++
	return n
}

// claim finds the call that started a sub-agent, by its prompt. Only calls that
// stand before the sub-agent's first line count, where the file holds both.
func (s *session) claim(prompt string, claimed map[string]bool) string {
	for _, t := range s.tasks {
		if t.prompt == prompt && prompt != "" && !claimed[t.id] && (len(s.seen) == 0 || t.seq <= s.passed) {
			return t.id
		}
	}
	return ""
}

// taskOf reads the call of a tool that starts sub-agents.
func taskOf(call eventlog.Part) (t task, ok bool) {
	if call.Name != "Task" && call.Name != "Agent" {
		return t, false
	}
	var arguments struct {
		Prompt text `json:"prompt"`
	}
	if json.Unmarshal(call.Arguments, &arguments) != nil {
		return t, false
	}
	return task{id: call.CallID, prompt: string(arguments.Prompt)}, true
}

// rawRecord is the record in an event that is no message; ok is false when the
// event was not imported by this package.
func rawRecord(e *eventlog.Event) (record jsontext.Value, ok bool) {
	if _, imported := e.MetadataValue(interop.OriginKey); !imported {
		return nil, false
	}
	switch e.Type {
	case eventlog.CompactionTriggered, eventlog.SessionUpdated:
		var data struct {
			Extra jsontext.Value `json:"extra"`
		}
		err := json.Unmarshal(e.Data, &data)
		return data.Extra, err == nil && len(data.Extra) > 0
	}
	return e.Data, len(e.Type) > len(Name) && e.Type[:len(Name)+1] == Name+":"
}

func headMove(e *eventlog.Event) (to int64, ok bool, err error) {
	if e.Type != eventlog.HeadMoved {
		return 0, false, nil
	}
	var data struct {
		To int64 `json:"to"`
	}
	err = json.Unmarshal(e.Data, &data)
	return data.To, true, err
}
