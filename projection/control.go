package projection

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// ControlState folds the claims, aborts, approvals, effects and children of the runs
// in a session. A rewind does not change it.
type ControlState struct {
	// Claim is the newest claim of a run. It is nil if there is none or it was
	// released.
	Claim *Claim `json:"claim,omitzero"`
	// Epoch is the highest epoch of all claims in this session.
	Epoch int64 `json:"epoch,omitzero"`
	// Aborts are the abort requests since the last claim.
	Aborts []AbortRequest `json:"aborts,omitzero"`
	// Approvals are the requests without an answer, in order.
	Approvals []OpenApproval `json:"approvals,omitzero"`
	// Effects are the effects without a result, in order.
	Effects []OpenEffect `json:"effects,omitzero"`
	// Done are the effects with a result, in turns that did not complete.
	Done []DoneEffect `json:"done,omitzero"`
	// Children are the child runs that have not ended, in order.
	Children []OpenChild `json:"children,omitzero"`
	// Ended and Resumed are the newest turns that ended and the newest consumed
	// cursors, up to 32 each, oldest first.
	Ended   []EndedTurn      `json:"ended,omitzero"`
	Resumed []ConsumedCursor `json:"resumed,omitzero"`

	approvals lookup[OpenApproval, *OpenApproval]
	effects   lookup[OpenEffect, *OpenEffect]
	done      lookup[DoneEffect, *DoneEffect]
}

// recentLimit is the largest number of ended turns and consumed cursors in the state.
// The log has the older ones.
const recentLimit = 32

// Claim is the claim of a run on the session.
type Claim struct {
	Seq    int64  `json:"seq"`
	Epoch  int64  `json:"epoch"`
	Runner string `json:"runner,omitzero"`
	Lease  string `json:"lease,omitzero"`
}

// AbortRequest asks to abort a turn; a zero TurnID is the running turn.
type AbortRequest struct {
	Seq    int64     `json:"seq"`
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	By     string    `json:"by,omitzero"`
	Reason string    `json:"reason,omitzero"`
}

// OpenApproval is an approval request without an answer.
type OpenApproval struct {
	Seq             int64        `json:"seq"`
	InterruptID     string       `json:"interrupt_id"`
	EffectID        string       `json:"effect_id,omitzero"`
	CallID          string       `json:"call_id,omitzero"`
	Name            string       `json:"name,omitzero"`
	Nonce           string       `json:"nonce,omitzero"`
	ArgumentsDigest event.Digest `json:"arguments_digest,omitzero"`
	ExpiresAt       time.Time    `json:"expires_at,omitzero"`
}

// OpenEffect is an effect without a result: its outcome is unknown.
type OpenEffect struct {
	// Seq is the seq of the newest intent.
	Seq             int64             `json:"seq"`
	Key             string            `json:"key"`
	TurnID          ulid.ULID         `json:"turn_id,omitzero"`
	Ordinal         string            `json:"ordinal,omitzero"`
	Kind            string            `json:"kind,omitzero"`
	Name            string            `json:"name,omitzero"`
	Class           event.EffectClass `json:"class,omitzero"`
	Attempt         int               `json:"attempt,omitzero"`
	Nonce           string            `json:"nonce,omitzero"`
	ArgumentsDigest event.Digest      `json:"arguments_digest,omitzero"`
	// Inherited reports that the effect was open at the fork point: do not run it
	// again in this session.
	Inherited bool `json:"inherited,omitzero"`
}

// DoneEffect is an effect with a result. The result itself is in the log.
type DoneEffect struct {
	Key     string    `json:"key"`
	TurnID  ulid.ULID `json:"turn_id"`
	Ordinal string    `json:"ordinal,omitzero"`
	// Intended and Completed are the seqs of the intent and the result.
	Intended  int64 `json:"intended,omitzero"`
	Completed int64 `json:"completed"`
	Attempt   int   `json:"attempt,omitzero"`
}

func (o *OpenApproval) lookupKey() (string, int64) { return o.InterruptID, o.Seq }
func (o *OpenEffect) lookupKey() (string, int64)   { return o.Key, o.Seq }
func (d *DoneEffect) lookupKey() (string, int64)   { return d.Key, d.Completed }

// OpenChild is a child run that has not ended.
type OpenChild struct {
	// Seq is the seq of the child's newest event.
	Seq       int64            `json:"seq"`
	ChildID   string           `json:"child_id"`
	SessionID string           `json:"session_id,omitzero"`
	CallID    string           `json:"call_id,omitzero"`
	Agent     string           `json:"agent,omitzero"`
	State     event.ChildState `json:"state"`
}

// EndedTurn is the end of a turn.
type EndedTurn struct {
	Seq        int64            `json:"seq"`
	TurnID     ulid.ULID        `json:"turn_id,omitzero"`
	Status     event.TurnStatus `json:"status"`
	StopReason string           `json:"stop_reason,omitzero"`
}

// ConsumedCursor is a cursor that a turn was resumed with.
type ConsumedCursor struct {
	Seq      int64  `json:"seq"`
	CursorID string `json:"cursor_id"`
}

// Control folds claims, aborts, approvals, effects and children of a session's runs.
// A fork inherits effects: a completed effect keeps its result, and the outcome of an
// open effect is unknown in the fork. A fork does not inherit claims, aborts,
// approvals and children.
func Control() Projection[ControlState] {
	return Projection[ControlState]{
		builtin: true, Name: "control", Version: 1, Scope: event.SessionScope, Apply: (*ControlState).apply, Digest: noDigest[ControlState],
	}
}

func (s *ControlState) apply(e *event.Event) error {
	switch e.Type.Name() {
	case event.SessionForked:
		s.fork()
	case event.RunClaimed:
		p, _, err := event.Decode[event.RunClaim](e)
		s.Claim = &Claim{Seq: e.Seq, Epoch: p.Epoch, Runner: p.Runner, Lease: p.Lease}
		s.Epoch, s.Aborts = max(s.Epoch, p.Epoch), nil
		return err
	case event.RunReleased:
		p, _, err := event.Decode[event.RunRelease](e)
		if s.Claim != nil && s.Claim.Epoch <= p.Epoch {
			s.Claim = nil
		}
		return err
	case event.AbortRequested:
		p, _, err := event.Decode[event.Abort](e)
		s.Aborts = append(s.Aborts, AbortRequest{Seq: e.Seq, TurnID: p.TurnID, By: p.By, Reason: p.Reason})
		return err
	case event.TurnCompleted:
		return s.endTurn(e)
	case event.TurnResumed:
		p, err := event.DecodeKept[event.TurnResumption](e)
		s.Resumed = recent(append(s.Resumed, ConsumedCursor{Seq: e.Seq, CursorID: p.CursorID}))
		return err
	case event.EffectIntended, event.EffectCompleted:
		return s.effect(e)
	case event.ApprovalRequested, event.ApprovalResolved, event.ApprovalCanceled:
		return s.approval(e)
	default:
		return s.child(e)
	}
	return nil
}

// fork clears the state that a fork does not inherit.
func (s *ControlState) fork() {
	s.Claim, s.Epoch, s.Aborts, s.Approvals, s.Children = nil, 0, nil, nil, nil
	s.approvals = lookup[OpenApproval, *OpenApproval]{}
	for i := range s.Effects {
		s.Effects[i].Inherited = true
	}
}

func (s *ControlState) endTurn(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnCompletion](e)
	s.Ended = recent(append(s.Ended, EndedTurn{Seq: e.Seq, TurnID: p.TurnID, Status: p.Status, StopReason: p.StopReason}))
	if p.Status == event.TurnStatusCompleted {
		s.Done = slices.DeleteFunc(s.Done, func(d DoneEffect) bool { return d.TurnID == p.TurnID })
		s.done = lookup[DoneEffect, *DoneEffect]{}
	}
	return err
}

func (s *ControlState) effect(e *event.Event) error {
	p, err := event.DecodeKept[event.EffectIntent](e)
	if err != nil {
		return err
	}
	intent := s.effects.remove(&s.Effects, p.Key)
	if e.Type.Name() == event.EffectIntended {
		s.effects.add(&s.Effects, OpenEffect{Seq: e.Seq, Key: p.Key, TurnID: p.TurnID, Ordinal: p.Ordinal, Kind: p.Kind,
			Name: p.Name, Class: p.Class, Attempt: p.Attempt, Nonce: p.Nonce, ArgumentsDigest: p.ArgumentsDigest})
		return nil
	}
	s.done.remove(&s.Done, p.Key)
	if !p.TurnID.IsZero() {
		s.done.add(&s.Done, DoneEffect{Key: p.Key, TurnID: p.TurnID, Ordinal: p.Ordinal, Intended: intent.Seq, Completed: e.Seq, Attempt: p.Attempt})
	}
	return nil
}

func (s *ControlState) approval(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalRequest](e)
	if err != nil {
		return err
	}
	s.approvals.remove(&s.Approvals, p.InterruptID)
	if e.Type.Name() == event.ApprovalRequested {
		s.approvals.add(&s.Approvals, OpenApproval{Seq: e.Seq, InterruptID: p.InterruptID, EffectID: p.EffectID, CallID: p.CallID,
			Name: p.Name, Nonce: p.Nonce, ArgumentsDigest: p.ArgumentsDigest, ExpiresAt: p.ExpiresAt})
	}
	return nil
}

func (s *ControlState) child(e *event.Event) error {
	state, ok := e.Type.ChildState()
	if !ok || state == event.ChildStateMerged {
		return nil
	}
	p, err := event.DecodeKept[event.Child](e)
	if err != nil {
		return err
	}
	c := OpenChild{Seq: e.Seq, ChildID: p.ChildID, SessionID: p.ChildSessionID, CallID: p.CallID, Agent: p.Agent, State: state}
	i := slices.IndexFunc(s.Children, func(o OpenChild) bool { return o.ChildID == p.ChildID })
	switch {
	case state.Ended():
		if i >= 0 {
			s.Children = slices.Delete(s.Children, i, i+1)
		}
	case i < 0:
		s.Children = append(s.Children, c)
	default:
		o := &s.Children[i]
		c.SessionID, c.CallID, c.Agent = cmp.Or(c.SessionID, o.SessionID), cmp.Or(c.CallID, o.CallID), cmp.Or(c.Agent, o.Agent)
		*o = c
	}
	return nil
}

// recent returns the last recentLimit elements of a list.
func recent[T any](list []T) []T {
	if n := len(list) - recentLimit; n > 0 {
		return slices.Delete(list, 0, n)
	}
	return list
}
