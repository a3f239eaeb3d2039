package projection

import (
	"cmp"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// ControlState folds the claims, aborts, reviews, effects, inputs and children of the
// runs in a session, by the rules of "Turns and runs" in docs/FORMAT.md. A rewind does
// not change it.
type ControlState struct {
	// Claim is the newest claim of a run. It is nil if there is none or it was
	// released.
	Claim *Claim `json:"claim,omitzero"`
	// Epoch is the highest epoch of the claims that count. The next claim has Epoch+1.
	Epoch int64 `json:"epoch,omitzero"`
	// Home is the id of the store of the newest claim, also in a fork and a copy of the
	// session. It is empty if the claim names none.
	Home string `json:"home,omitzero"`
	// TurnID is the turn that began last, by seq. It is zero after the turn ended,
	// unless the turn failed: a failed turn may be tried again.
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	// Aborts are the newest requests to abort the turn TurnID, up to 32, oldest first.
	Aborts []AbortRequest `json:"aborts,omitzero"`
	// Approvals are the requests without an answer, and Answers the answers, in order.
	// Effects are the effects without a result, and Done the effects with a result, in
	// order. When TurnID ends or another turn begins, the entries of the old turn are
	// dropped. LoadPending has the entries of an open turn in any case.
	Approvals []OpenApproval `json:"approvals,omitzero"`
	Answers   []Answer       `json:"answers,omitzero"`
	Effects   []OpenEffect   `json:"effects,omitzero"`
	Done      []DoneEffect   `json:"done,omitzero"`
	// Inbox are the posted inputs that no message and no turn has taken, in order.
	Inbox []PostedInput `json:"inbox,omitzero"`
	// Children are the child runs that have not ended, in order.
	Children []OpenChild `json:"children,omitzero"`
	// Ended are the newest events that end turns, and Resumed the newest consumed
	// cursors, up to 32 each, oldest first.
	Ended   []EndedTurn      `json:"ended,omitzero"`
	Resumed []ConsumedCursor `json:"resumed,omitzero"`

	approvals lookup[OpenApproval, *OpenApproval]
	answers   lookup[Answer, *Answer]
	effects   lookup[OpenEffect, *OpenEffect]
	done      lookup[DoneEffect, *DoneEffect]
	inbox     lookup[PostedInput, *PostedInput]
	children  index[OpenChild, string, bool]

	all bool // keep the entries of all turns, and all ends and cursors
}

// recentLimit is the largest number of aborts, ends of turns and consumed cursors in
// the state. The log has the older ones.
const recentLimit = 32

// Claim is the claim of a run on the session.
type Claim struct {
	Seq    int64  `json:"seq"`
	Epoch  int64  `json:"epoch"`
	Runner string `json:"runner,omitzero"`
	Lease  string `json:"lease,omitzero"`
}

// AbortRequest asks to abort a turn; a zero TurnID is the open turn.
type AbortRequest struct {
	Seq    int64     `json:"seq"`
	TurnID ulid.ULID `json:"turn_id,omitzero"`
	By     string    `json:"by,omitzero"`
	Reason string    `json:"reason,omitzero"`
}

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

// EndedTurn is an event that ends a turn: a turn_completed or an abort_requested. A zero
// TurnID is the turn that is open there.
type EndedTurn struct {
	Seq        int64            `json:"seq"`
	TurnID     ulid.ULID        `json:"turn_id,omitzero"`
	Status     event.TurnStatus `json:"status"`
	StopReason string           `json:"stop_reason,omitzero"`
	// Abort reports an abort_requested. The runner of the turn may still append a
	// turn_completed.
	Abort bool `json:"abort,omitzero"`
}

// ConsumedCursor is a cursor that a turn was resumed with.
type ConsumedCursor struct {
	Seq      int64  `json:"seq"`
	CursorID string `json:"cursor_id"`
}

// Control folds claims, aborts, reviews, effects, posted inputs and children of a
// session's runs. A fork inherits effects: a completed effect keeps its result, and the
// outcome of an open effect is unknown in the fork. A fork does not inherit claims,
// aborts, reviews, inputs and children. A copied event counts as an event before the
// fork point.
func Control() Projection[ControlState] {
	return Projection[ControlState]{
		builtin: true, Name: "control", Version: 1, Scope: event.SessionScope, Apply: (*ControlState).apply, Digest: noDigest[ControlState],
	}
}

func (s *ControlState) apply(e *event.Event) error {
	switch e.Type.Name() {
	case event.SessionForked:
		s.fork()
		return nil
	case event.TurnStarted:
		return s.startTurn(e)
	case event.TurnCompleted:
		return s.endTurn(e)
	case event.TurnResumed:
		return s.resume(e)
	case event.EffectIntended:
		return s.intend(e)
	case event.EffectCompleted:
		return s.complete(e)
	case event.MessageAdded:
		return s.takeMessage(e)
	case event.RunClaimed:
		return s.claim(e)
	}
	if e.Copied() {
		return nil // a fork does not inherit the rest
	}
	switch e.Type.Name() {
	case event.RunReleased:
		return s.release(e)
	case event.AbortRequested:
		return s.abort(e)
	case event.ApprovalRequested:
		return s.requestApproval(e)
	case event.ApprovalResolved, event.ApprovalCanceled:
		return s.answerApproval(e)
	case event.ExternalInput:
		return s.post(e)
	}
	return s.child(e)
}

// fork clears the state that a fork does not inherit.
func (s *ControlState) fork() {
	*s = ControlState{TurnID: s.TurnID, Effects: s.Effects, Done: s.Done, Ended: s.Ended, Resumed: s.Resumed, Home: s.Home, all: s.all}
	for i := range s.Effects {
		s.Effects[i].Inherited = true
	}
	s.Ended = slices.DeleteFunc(s.Ended, func(x EndedTurn) bool { return x.Abort })
}

// claim folds a run_claimed. A claim counts if its epoch is the next one. Of a copied claim
// only the store counts.
func (s *ControlState) claim(e *event.Event) error {
	p, _, err := event.Decode[event.RunClaim](e)
	switch {
	case err != nil:
		return err
	case e.Copied():
		s.Home = p.Store
	case p.Epoch == s.Epoch+1:
		s.Claim, s.Epoch, s.Home = &Claim{Seq: e.Seq, Epoch: p.Epoch, Runner: p.Runner, Lease: p.Lease}, p.Epoch, p.Store
		for i := range s.Inbox {
			s.Inbox[i].Store = p.Store
		}
	}
	return nil
}

func (s *ControlState) release(e *event.Event) error {
	p, _, err := event.Decode[event.RunRelease](e)
	if err == nil && s.Claim != nil && s.Claim.Epoch == p.Epoch {
		s.Claim = nil
	}
	return err
}

func (s *ControlState) abort(e *event.Event) error {
	p, _, err := event.Decode[event.Abort](e)
	if err != nil {
		return err
	}
	s.addEnd(EndedTurn{Seq: e.Seq, TurnID: p.TurnID, Status: event.TurnStatusAborted, Abort: true})
	if !s.TurnID.IsZero() && (p.TurnID.IsZero() || p.TurnID == s.TurnID) {
		s.Aborts = recent(append(s.Aborts, AbortRequest{Seq: e.Seq, TurnID: p.TurnID, By: p.By, Reason: p.Reason}))
	}
	return nil
}

func (s *ControlState) startTurn(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnStart](e)
	s.TurnID, s.Aborts = e.ID, nil
	s.drop(func(turn ulid.ULID) bool { return turn != e.ID })
	if !e.Copied() {
		s.take(p.InputID)
	}
	return err
}

// endTurn drops the entries of the turn that ended. A failed turn may be tried again:
// its entries stay until another turn begins.
func (s *ControlState) endTurn(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnCompletion](e)
	status := p.Status.Known()
	s.addEnd(EndedTurn{Seq: e.Seq, TurnID: p.TurnID, Status: status, StopReason: p.StopReason})
	ended := cmp.Or(p.TurnID, s.TurnID)
	if ended == s.TurnID {
		s.Aborts = nil
	}
	if status == event.TurnStatusFailed {
		return err
	}
	s.drop(func(turn ulid.ULID) bool { return turn == ended })
	if ended == s.TurnID {
		s.TurnID = ulid.ULID{}
	}
	return err
}

func (s *ControlState) addEnd(x EndedTurn) {
	if s.Ended = append(s.Ended, x); !s.all {
		s.Ended = recent(s.Ended)
	}
}

func (s *ControlState) resume(e *event.Event) error {
	p, err := event.DecodeKept[event.TurnResumption](e)
	if s.Resumed = append(s.Resumed, ConsumedCursor{Seq: e.Seq, CursorID: p.CursorID}); !s.all {
		s.Resumed = recent(s.Resumed)
	}
	return err
}

// drop removes the entries of some turns. Entries without a turn stay.
func (s *ControlState) drop(of func(turn ulid.ULID) bool) {
	if s.all {
		return
	}
	dropTurns(&s.approvals, &s.Approvals, of)
	dropTurns(&s.answers, &s.Answers, of)
	dropTurns(&s.effects, &s.Effects, of)
	dropTurns(&s.done, &s.Done, of)
}

func (s *ControlState) child(e *event.Event) error {
	state, ok := e.Type.ChildState()
	if !ok || state == event.ChildMerged {
		return nil
	}
	p, err := event.DecodeKept[event.Child](e)
	if err != nil {
		return err
	}
	c := OpenChild{Seq: e.Seq, ChildID: p.ChildID, SessionID: p.ChildSessionID, CallID: p.CallID, Agent: p.Agent, State: state}
	open := s.children.of(&s.Children, func(ids map[string]bool, i int) { ids[s.Children[i].ChildID] = true })
	i := len(s.Children) - 1
	for open[p.ChildID] && s.Children[i].ChildID != p.ChildID { // most events are of the newest
		i--
	}
	switch {
	case state.Ended():
		if open[p.ChildID] {
			s.Children = slices.Delete(s.Children, i, i+1)
			delete(open, p.ChildID)
		}
	case !open[p.ChildID]:
		s.Children, open[p.ChildID] = append(s.Children, c), true
	default:
		o := &s.Children[i]
		c.SessionID, c.CallID, c.Agent = cmp.Or(c.SessionID, o.SessionID), cmp.Or(c.CallID, o.CallID), cmp.Or(c.Agent, o.Agent)
		*o = c
	}
	return nil
}

// recent returns the last recentLimit elements of a list.
func recent[T any](list []T) []T { return newest(list, recentLimit) }

// newest returns the last elements of a list, limit at most.
func newest[T any](list []T, limit int) []T {
	if n := len(list) - limit; n > 0 {
		return slices.Delete(list, 0, n)
	}
	return list
}
