package projection

import (
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// CallState is what the active path left open, and its last turn.
type CallState struct {
	// Calls wait for their results, Waits for the outside; both in order.
	Calls []OpenCall `json:"calls,omitzero"`
	Waits []OpenWait `json:"waits,omitzero"`
	// Turn is the last turn that was started on the path, nil if none was.
	Turn *PathTurn `json:"turn,omitzero"`

	// SessionID is that of the last event.
	SessionID string `json:"session_id,omitzero"`
}

// OpenCall is a tool call without a result. The name is empty where the message
// was redacted.
type OpenCall struct {
	CallID string `json:"call_id"`
	Name   string `json:"name,omitzero"`
	// Seq is that of the message.
	Seq int64 `json:"seq"`
}

// OpenWait is a wait that was not resolved.
type OpenWait struct {
	WaitID     string    `json:"wait_id"`
	ExternalID string    `json:"external_id,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	Until      time.Time `json:"until,omitzero"`
	Seq        int64     `json:"seq"`
}

// PathTurn is a turn that was started on the path.
type PathTurn struct {
	ID         ulid.ULID `json:"id"`
	Seq        int64     `json:"seq"`
	Index      int       `json:"index"`
	Agent      string    `json:"agent,omitzero"`
	SnapshotID string    `json:"snapshot_id,omitzero"`
	InputID    string    `json:"input_id,omitzero"`
	// Hibernated is the turn's last hibernation on the path, resumed since or not.
	Hibernated *Hibernation `json:"hibernated,omitzero"`

	// Left are the stretches since the turn's start that the path left again.
	Left []event.Stretch `json:"left,omitzero"`
}

// Hibernation is where a turn was laid down.
type Hibernation struct {
	Seq        int64        `json:"seq"`
	Cursor     event.Cursor `json:"cursor"`
	SnapshotID string       `json:"snapshot_id,omitzero"`
	Reason     string       `json:"reason,omitzero"`
}

// Calls are the tool calls and waits that are open on the active path, and its
// last turn. A fork does not inherit waits. LoadPending joins them with what is
// open in the session.
func Calls() Projection[CallState] {
	return Projection[CallState]{builtin: true, Name: "calls", Version: 1, Apply: (*CallState).apply, Digest: noDigest[CallState]}
}

func (s *CallState) apply(e *event.Event) error {
	if e.SessionID != s.SessionID || e.Type.Name() == event.SessionForked {
		s.SessionID, s.Waits = e.SessionID, nil
	}
	switch e.Type.Name() {
	case event.MessageAdded:
		return s.message(e)
	case event.WaitStarted, event.WaitResolved:
		return s.wait(e)
	case event.TurnStarted:
		p, err := event.DecodeKept[event.TurnStart](e)
		s.Turn = &PathTurn{ID: e.ID, Seq: e.Seq, Index: p.Index, Agent: p.Agent, SnapshotID: p.SnapshotID, InputID: p.InputID}
		return err
	case event.TurnHibernated:
		return s.hibernate(e)
	case event.HeadMoved:
		return s.leave(e)
	}
	return nil
}

// message closes calls by their results, then opens those it makes.
func (s *CallState) message(e *event.Event) error {
	m, _, err := event.OutlineOf(e)
	if err != nil {
		return err
	}
	for _, id := range m.Results {
		s.answer(id)
	}
	for _, c := range m.Calls {
		s.call(OpenCall{CallID: c.ID, Name: c.Name, Seq: e.Seq})
	}
	return nil
}

func (s *CallState) answer(id string) {
	s.Calls = slices.DeleteFunc(s.Calls, func(c OpenCall) bool { return c.CallID == id })
}

func (s *CallState) call(c OpenCall) {
	if !slices.ContainsFunc(s.Calls, func(o OpenCall) bool { return o.CallID == c.CallID }) {
		s.Calls = append(s.Calls, c)
	}
}

func (s *CallState) wait(e *event.Event) error {
	w, err := event.DecodeKept[event.Wait](e)
	if err != nil {
		return err
	}
	s.Waits = slices.DeleteFunc(s.Waits, func(o OpenWait) bool { return o.WaitID == w.WaitID })
	if e.Type.Name() == event.WaitStarted {
		s.Waits = append(s.Waits, OpenWait{WaitID: w.WaitID, ExternalID: w.ExternalID, Reason: w.Reason, Until: w.Until, Seq: e.Seq})
	}
	return nil
}

func (s *CallState) hibernate(e *event.Event) error {
	h, err := event.DecodeKept[event.TurnHibernation](e)
	if s.Turn != nil && s.Turn.ID == h.TurnID {
		s.Turn.Hibernated = &Hibernation{Seq: e.Seq, Cursor: h.Cursor, SnapshotID: h.SnapshotID, Reason: h.Reason}
	}
	return err
}

// leave notes what of the turn is on the path no more.
func (s *CallState) leave(e *event.Event) error {
	m, _, err := event.Decode[event.HeadMove](e)
	if s.Turn != nil && m.To < e.Seq-1 {
		s.Turn.Left = append(s.Turn.Left, event.Stretch{From: m.To + 1, To: e.Seq - 1})
	}
	return err
}

// has reports whether the event of the session with that seq is on the path,
// from the turn's start on.
func (t *PathTurn) has(seq int64) bool {
	return seq >= t.Seq && !slices.ContainsFunc(t.Left, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}
