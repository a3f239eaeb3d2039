package projection

import (
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// CallState is the open calls and waits of the active path, and its last turn.
type CallState struct {
	// Calls and Waits are the tool calls without a result and the waits without a
	// resolution, in order.
	Calls []OpenCall `json:"calls,omitzero"`
	Waits []OpenWait `json:"waits,omitzero"`
	// Turn is the last turn that began on the path, nil if there is none.
	Turn *PathTurn `json:"turn,omitzero"`
	// Early are the calls whose result an import stored before the call.
	Early []string `json:"early,omitzero"`

	// SessionID is the session of the last event.
	SessionID string `json:"session_id,omitzero"`
}

// OpenCall is a tool call without a result. The name is empty if the message was
// redacted.
type OpenCall struct {
	CallID string `json:"call_id"`
	Name   string `json:"name,omitzero"`
	// Seq is the seq of the message.
	Seq int64 `json:"seq"`
}

// OpenWait is a wait without a resolution.
type OpenWait struct {
	WaitID     string `json:"wait_id"`
	ExternalID string `json:"external_id,omitzero"`
	// TurnID, CursorID and Ordinal are the turn that waits, its cursor, and the place of
	// the wait in the turn.
	TurnID   ulid.ULID `json:"turn_id,omitzero"`
	CursorID string    `json:"cursor_id,omitzero"`
	Ordinal  string    `json:"ordinal,omitzero"`
	Reason   string    `json:"reason,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Seq      int64     `json:"seq"`
}

// PathTurn is a turn that began on the path.
type PathTurn struct {
	ID    ulid.ULID `json:"id"`
	Seq   int64     `json:"seq"`
	Index int       `json:"index"`
	Agent string    `json:"agent,omitzero"`
	// SnapshotID is reserved for the snapshot at the turn's end. It is empty if the turn
	// began before the fork point, or was copied: the id belongs to the other session.
	SnapshotID string `json:"snapshot_id,omitzero"`
	InputID    string `json:"input_id,omitzero"`
	// Version is the code that started the turn.
	Version string `json:"version,omitzero"`
	// Hibernated is the turn's last hibernation on the path. The turn may be resumed
	// since.
	Hibernated *Hibernation `json:"hibernated,omitzero"`

	// Left are the ranges of events since the turn's start that a head_moved took off
	// the path.
	Left []event.Stretch `json:"left,omitzero"`
}

// Hibernation is a turn_hibernated event: the place to resume a turn at.
type Hibernation struct {
	Seq        int64        `json:"seq"`
	Cursor     event.Cursor `json:"cursor"`
	SnapshotID string       `json:"snapshot_id,omitzero"`
	Reason     string       `json:"reason,omitzero"`
	// Inherited reports a hibernation before the fork point, or a copied one. Nothing
	// resumes from its cursor: hibernate again, with a cursor of this session.
	Inherited bool `json:"inherited,omitzero"`
}

// Calls is the open tool calls and waits of the active path, and its last turn. A
// fork or a copy does not inherit waits. LoadPending adds the open work of the session.
func Calls() Projection[CallState] {
	return Projection[CallState]{builtin: true, Name: "calls", Version: 1, Apply: (*CallState).apply, Digest: noDigest[CallState]}
}

func (s *CallState) apply(e *event.Event) error {
	if e.SessionID != s.SessionID || e.Type.Name() == event.SessionForked {
		s.inherit(e.SessionID)
	}
	switch e.Type.Name() {
	case event.MessageAdded:
		return s.message(e)
	case event.WaitStarted, event.WaitResolved:
		return s.wait(e)
	case event.TurnStarted:
		return s.startTurn(e)
	case event.TurnHibernated:
		return s.hibernate(e)
	case event.HeadMoved:
		return s.moveHead(e)
	}
	return nil
}

// inherit begins the events of a session, after the events of its parent.
func (s *CallState) inherit(session string) {
	s.SessionID, s.Waits = session, nil
	if s.Turn == nil {
		return
	}
	s.Turn.SnapshotID = ""
	if s.Turn.Hibernated != nil {
		s.Turn.Hibernated.Inherited = true
	}
}

// message closes the calls that have a result in it, then opens its own calls.
func (s *CallState) message(e *event.Event) error {
	m, _, err := event.OutlineOf(e)
	if err != nil {
		return err
	}
	for _, id := range m.Results {
		s.answer(id, e)
	}
	for _, c := range m.Calls {
		if i := slices.Index(s.Early, c.ID); i >= 0 {
			s.Early = slices.Delete(slices.Clone(s.Early), i, i+1)
			continue
		}
		s.call(OpenCall{CallID: c.ID, Name: c.Name, Seq: e.Seq})
	}
	return nil
}

// answer closes a call. The result of an import may come before its call.
func (s *CallState) answer(id string, e *event.Event) {
	before := len(s.Calls)
	s.Calls = slices.DeleteFunc(s.Calls, func(c OpenCall) bool { return c.CallID == id })
	if len(s.Calls) == before && slices.Contains(e.Broken(), event.OrphanResult) && !slices.Contains(s.Early, id) {
		s.Early = append(slices.Clip(s.Early), id)
	}
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
	if e.Type.Name() == event.WaitStarted && !e.Copied() {
		s.Waits = append(s.Waits, OpenWait{WaitID: w.WaitID, ExternalID: w.ExternalID, TurnID: w.TurnID, CursorID: w.CursorID,
			Ordinal: w.Ordinal, Reason: w.Reason, Until: w.Until, Seq: e.Seq})
	}
	return nil
}

// startTurn begins a turn. It ends the turn before it, and the waits of that turn.
func (s *CallState) startTurn(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnStart](e)
	s.Turn = &PathTurn{ID: e.ID, Seq: e.Seq, Index: p.Index, Agent: p.Agent, SnapshotID: p.SnapshotID, InputID: p.InputID, Version: p.Version}
	if e.Copied() {
		s.Turn.SnapshotID = ""
	}
	s.Waits = slices.DeleteFunc(s.Waits, func(w OpenWait) bool { return !w.TurnID.IsZero() && w.TurnID != e.ID })
	return err
}

func (s *CallState) hibernate(e *event.Event) error {
	h, err := event.DecodeKept[event.TurnHibernation](e)
	if s.Turn != nil && s.Turn.ID == h.TurnID {
		s.Turn.Hibernated = &Hibernation{Seq: e.Seq, Cursor: h.Cursor, SnapshotID: h.SnapshotID, Reason: h.Reason, Inherited: e.Copied()}
	}
	return err
}

// moveHead adds the events that a head_moved takes off the path to the turn.
func (s *CallState) moveHead(e *event.Event) error {
	m, _, err := event.Decode[event.HeadMove](e)
	if s.Turn != nil && m.To < e.Seq-1 {
		s.Turn.Left = append(s.Turn.Left, event.Stretch{From: m.To + 1, To: e.Seq - 1})
	}
	return err
}

// has reports whether event seq of the session is on the path, at or after the turn's
// start.
func (t *PathTurn) has(seq int64) bool {
	return seq >= t.Seq && !slices.ContainsFunc(t.Left, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}
