package projection

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// ControlState is what the runs of a session have decided, done and left open,
// whatever was rewound since.
type ControlState struct {
	// Claim is the newest claim of a run; nil if there is none, or it was
	// released.
	Claim *Claim `json:"claim,omitzero"`
	// Epoch is the highest epoch of any claim of this session.
	Epoch int64 `json:"epoch,omitzero"`
	// Aborts are requests to abort, since the last claim.
	Aborts []AbortRequest `json:"aborts,omitzero"`
	// Approvals are those nobody has answered, in order.
	Approvals []OpenApproval `json:"approvals,omitzero"`
	// Effects were intended and have no result, in order.
	Effects []OpenEffect `json:"effects,omitzero"`
	// Done are the effects with a result, of turns that did not complete.
	Done []DoneEffect `json:"done,omitzero"`
	// Children have not ended, in order.
	Children []OpenChild `json:"children,omitzero"`
	// Ended are the newest turns that ended, and Resumed the newest cursors that
	// were consumed, both oldest first.
	Ended   []EndedTurn      `json:"ended,omitzero"`
	Resumed []ConsumedCursor `json:"resumed,omitzero"`

	approvals lookup[OpenApproval, *OpenApproval]
	effects   lookup[OpenEffect, *OpenEffect]
	done      lookup[DoneEffect, *DoneEffect]
}

// remembered is how many ended turns and consumed cursors the state keeps;
// older ones are looked up in the log.
const remembered = 32

// Claim is that of a run on the session.
type Claim struct {
	Seq    int64  `json:"seq"`
	Epoch  int64  `json:"epoch"`
	Runner string `json:"runner,omitzero"`
	Lease  string `json:"lease,omitzero"`
}

// AbortRequest asks to abort a turn; a zero TurnID is whichever runs.
type AbortRequest struct {
	Seq    int64     `json:"seq"`
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	By     string    `json:"by,omitzero"`
	Reason string    `json:"reason,omitzero"`
}

// OpenApproval is a request for consent.
type OpenApproval struct {
	Seq             int64        `json:"seq"`
	InterruptID     string       `json:"interrupt_id"`
	EffectID        string       `json:"effect_id,omitzero"`
	CallID          string       `json:"call_id,omitzero"`
	Name            string       `json:"name,omitzero"`
	ArgumentsDigest event.Digest `json:"arguments_digest,omitzero"`
	ExpiresAt       time.Time    `json:"expires_at,omitzero"`
}

// OpenEffect is an effect that was intended and has no result: its outcome is
// not known.
type OpenEffect struct {
	// Seq is that of the newest intent.
	Seq             int64             `json:"seq"`
	Key             string            `json:"key"`
	TurnID          ulid.ULID         `json:"turn_id,omitzero"`
	Ordinal         string            `json:"ordinal,omitzero"`
	Kind            string            `json:"kind,omitzero"`
	Name            string            `json:"name,omitzero"`
	Class           event.EffectClass `json:"class,omitzero"`
	Attempt         int               `json:"attempt,omitzero"`
	ArgumentsDigest event.Digest      `json:"arguments_digest,omitzero"`
	// Inherited says that it was open where the session was forked: nobody may
	// run it again here.
	Inherited bool `json:"inherited,omitzero"`
}

// DoneEffect is an effect with its result, which stays in the log.
type DoneEffect struct {
	Key     string    `json:"key"`
	TurnID  ulid.ULID `json:"turn_id"`
	Ordinal string    `json:"ordinal,omitzero"`
	// Intended and Completed are the seqs of intent and result.
	Intended  int64 `json:"intended,omitzero"`
	Completed int64 `json:"completed"`
	Attempt   int   `json:"attempt,omitzero"`
}

func (o *OpenApproval) keyed() (string, int64) { return o.InterruptID, o.Seq }
func (o *OpenEffect) keyed() (string, int64)   { return o.Key, o.Seq }
func (d *DoneEffect) keyed() (string, int64)   { return d.Key, d.Completed }

// OpenChild is a child run that has not ended.
type OpenChild struct {
	// Seq is that of its newest event.
	Seq       int64            `json:"seq"`
	ChildID   string           `json:"child_id"`
	SessionID string           `json:"session_id,omitzero"`
	CallID    string           `json:"call_id,omitzero"`
	Agent     string           `json:"agent,omitzero"`
	State     event.ChildState `json:"state"`
}

// EndedTurn is how a turn ended.
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

// Control is what the runs of a session decided, did and left open. A fork
// inherits effects with a result, and that others' outcome is unknown; never
// claims, aborts, approvals and children.
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
		s.Resumed = last(append(s.Resumed, ConsumedCursor{Seq: e.Seq, CursorID: p.CursorID}))
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

// fork clears what a fork does not inherit.
func (s *ControlState) fork() {
	s.Claim, s.Epoch, s.Aborts, s.Approvals, s.Children = nil, 0, nil, nil, nil
	s.approvals = lookup[OpenApproval, *OpenApproval]{}
	for i := range s.Effects {
		s.Effects[i].Inherited = true
	}
}

func (s *ControlState) endTurn(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnCompletion](e)
	s.Ended = last(append(s.Ended, EndedTurn{Seq: e.Seq, TurnID: p.TurnID, Status: p.Status, StopReason: p.StopReason}))
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
	intent := s.effects.take(&s.Effects, p.Key)
	if e.Type.Name() == event.EffectIntended {
		s.effects.add(&s.Effects, OpenEffect{Seq: e.Seq, Key: p.Key, TurnID: p.TurnID, Ordinal: p.Ordinal, Kind: p.Kind,
			Name: p.Name, Class: p.Class, Attempt: p.Attempt, ArgumentsDigest: p.ArgumentsDigest})
		return nil
	}
	s.done.take(&s.Done, p.Key)
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
	s.approvals.take(&s.Approvals, p.InterruptID)
	if e.Type.Name() == event.ApprovalRequested {
		s.approvals.add(&s.Approvals, OpenApproval{Seq: e.Seq, InterruptID: p.InterruptID, EffectID: p.EffectID, CallID: p.CallID,
			Name: p.Name, ArgumentsDigest: p.ArgumentsDigest, ExpiresAt: p.ExpiresAt})
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

// last is the newest of a list that is remembered in part.
func last[T any](list []T) []T {
	if n := len(list) - remembered; n > 0 {
		return slices.Delete(list, 0, n)
	}
	return list
}
