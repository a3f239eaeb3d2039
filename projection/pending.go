package projection

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Pending is the open work of a session: a program decides about it when it resumes.
// It is a copy: later events do not change it.
type Pending struct {
	// Calls and Waits are open on the active path.
	Calls []PendingCall
	Waits []OpenWait
	// Approvals, Effects and Children are open in the session, and Inbox has the posted
	// inputs. A rewind does not close them. Approvals and waits of a turn count while the
	// turn is open.
	Approvals []OpenApproval
	Effects   []OpenEffect
	Children  []OpenChild
	Inbox     []PostedInput
	// Answers are the answers to approval requests of the open turn, and Done its effects
	// with a result, in order.
	Answers []Answer
	Done    []DoneEffect
	// Turn is the open turn of the path, or nil. Cursor is its hibernation. Cursor is
	// nil if the turn does not hibernate or was resumed.
	Turn   *PathTurn
	Cursor *Hibernation
	// Aborted is the last turn of the path if an abort_requested ended it and its
	// turn_completed is missing, else nil. Append the turn_completed.
	Aborted *PathTurn
	// NextTurn is the index of the next turn_started.
	NextTurn int
	// Claim is the newest claim of a run, nil if there is none or it was released. It
	// does not say whether the run is alive.
	Claim *Claim
	// Home is the id of the store of the newest claim, as in ControlState.
	Home string
}

// PendingCall is a tool call without a result.
type PendingCall struct {
	OpenCall
	// Arguments are the arguments of the call, as the model gave them; nil if the
	// message was redacted.
	Arguments jsontext.Value
	// Intended is the effect of the call if it has no result: the tool may have run.
	// Its Class says whether it may run again.
	Intended *OpenEffect
	// Done is the effect of the call if it has a result: append the result, and do
	// not run the tool again.
	Done *DoneEffect
}

// IsZero reports whether nothing is pending. Answers and Done do not count.
func (p *Pending) IsZero() bool {
	return len(p.Calls) == 0 && len(p.Waits) == 0 && len(p.Approvals) == 0 && len(p.Effects) == 0 && len(p.Children) == 0 &&
		len(p.Inbox) == 0 && p.Turn == nil && p.Aborted == nil
}

// Resumable reports whether the turn can be resumed from Cursor: none of the cursor's
// approvals and waits is open.
func (p *Pending) Resumable() bool {
	if p.Cursor == nil || p.Cursor.Inherited {
		return false
	}
	c := &p.Cursor.Cursor
	approval := slices.ContainsFunc(p.Approvals, func(a OpenApproval) bool { return a.CursorID == c.ID || a.InterruptID == c.InterruptID })
	return !approval && !slices.ContainsFunc(p.Waits, func(w OpenWait) bool { return w.CursorID == c.ID })
}

// LoadPending loads the pending work at the head of a session. Load lists the errors.
func LoadPending(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Pending, error) {
	l, err := LoadSet(ctx, log, session, builtinSet("pending", Calls(), Control()), opts...)
	if err != nil {
		return Pending{}, err
	}
	return PendingOf(ctx, log, l)
}

// PendingOf is LoadPending for loaded states. It is an error if the set
// lacks Calls or Control. It reads the messages with pending calls from the log. It also
// reads the events since the start of the path's last turn if Control may have dropped
// some of them: more than 32 turns or attempts ended since, or the head moved back into
// a turn that had ended.
//
// An effect belongs to a call if its key is the call's id, or if it has the call's
// name and the digest of the call's arguments.
func PendingOf(ctx context.Context, log *eventlog.Log, l States) (Pending, error) {
	path, hasPath := State(l, Calls())
	session, hasSession := State(l, Control())
	if !hasPath || !hasSession {
		return Pending{}, fmt.Errorf("%w: pending work needs the projections %s and %s", errInvalidSet, Calls().Name, Control().Name)
	}
	p := Pending{Children: slices.Clone(session.Children), Inbox: slices.Clone(session.Inbox), Claim: clone(session.Claim), Home: session.Home}
	if path.Turn != nil {
		p.NextTurn = path.Turn.Index + 1
	}
	turn, err := p.findTurn(ctx, log, l.loaded(), path.Turn, session)
	if err != nil {
		return Pending{}, err
	}
	p.addWork(path, session, turn)
	if err := p.describe(ctx, log, l.loaded().Session); err != nil {
		return p, err
	}
	p.Calls, err = pendingCalls(ctx, log, l.loaded().Session, path, &p)
	return p, err
}

// findTurn sets Turn and Cursor, or Aborted. It returns a state that has everything
// about the open turn.
func (p *Pending) findTurn(ctx context.Context, log *eventlog.Log, l *Loaded, t *PathTurn, session *ControlState) (turn *ControlState, err error) {
	turn = session
	if t == nil {
		return turn, nil
	}
	if session.forgot(t) {
		if turn, err = foldTurn(ctx, log, l, t); err != nil {
			return nil, err
		}
	}
	switch aborted, completed := turn.endOf(t); {
	case completed:
		return turn, nil
	case aborted:
		p.Aborted = t.clone()
		return turn, nil
	}
	p.Turn = t.clone()
	if !turn.consumed(t.Hibernated) {
		p.Cursor = clone(t.Hibernated)
	}
	if turn == session && session.TurnID != t.ID { // session dropped the entries of the turn
		return foldTurn(ctx, log, l, t)
	}
	return turn, nil
}

// addWork sets the open and the recorded work. turn is the state of the open turn.
func (p *Pending) addWork(path *CallState, session, turn *ControlState) {
	var open ulid.ULID
	if p.Turn != nil {
		open = p.Turn.ID
	}
	counts := func(turn ulid.ULID) bool { return turn.IsZero() || turn == open }
	p.Waits = slices.DeleteFunc(slices.Clone(path.Waits), func(w OpenWait) bool { return !counts(w.TurnID) })
	p.Approvals = merge(session.Approvals, turn.Approvals, open)
	p.Approvals = slices.DeleteFunc(p.Approvals, func(a OpenApproval) bool { return !counts(a.TurnID) })
	p.Effects = merge(session.Effects, turn.Effects, open)
	p.Done = merge(session.Done, turn.Done, open)
	p.Answers = merge(nil, turn.Answers, open)
}

// merge returns the entries of a turn from one list and all other entries from another
// one, in order.
func merge[T any, P turnElement[T]](others, turns []T, turn ulid.ULID) (list []T) {
	is := func(v *T) bool { return !turn.IsZero() && P(v).turn() == turn }
	list = slices.Grow(list, max(len(others), len(turns)))
	for i := range others {
		if !is(&others[i]) {
			list = append(list, others[i])
		}
	}
	for i := range turns {
		if is(&turns[i]) {
			list = append(list, turns[i])
		}
	}
	seq := func(i int) int64 { _, seq := P(&list[i]).lookupKey(); return seq }
	sort.Slice(list, func(i, j int) bool { return seq(i) < seq(j) })
	return list
}

// pendingCalls returns the open calls of a path with their arguments and effects.
func pendingCalls(ctx context.Context, log *eventlog.Log, session string, path *CallState, p *Pending) (calls []PendingCall, err error) {
	var e event.Event
	used := map[string]bool{} // keys of effects
	for _, open := range path.Calls {
		if e.Seq != open.Seq {
			if e, err = log.Event(ctx, session, open.Seq); err != nil {
				return nil, fmt.Errorf("message of call %q: %w", open.CallID, err)
			}
		}
		c := PendingCall{OpenCall: open}
		if c.Arguments, err = argumentsOf(&e, open.CallID); err != nil {
			return nil, err
		}
		c.findEffect(p, used)
		calls = append(calls, c)
	}
	return calls, nil
}

// argumentsOf returns the arguments of a call in message e; nil if e was redacted.
func argumentsOf(e *event.Event, callID string) (jsontext.Value, error) {
	if e.Redacted() || e.Type.Name() != event.MessageAdded {
		return nil, nil
	}
	m, _, err := event.Decode[event.Message](e)
	if err != nil {
		return nil, err
	}
	for _, part := range m.Parts {
		if part.Type == event.ToolCallPart && part.CallID == callID {
			return part.Arguments, nil
		}
	}
	return nil, nil
}

// findEffect sets the effect of the call. used are the keys of the effects of earlier
// calls.
func (c *PendingCall) findEffect(p *Pending, used map[string]bool) {
	for _, x := range p.Effects {
		same := x.Name != "" && x.Name == c.Name && hasArguments(&x, c.Arguments)
		if !used[x.Key] && (x.Key == c.CallID || same) {
			c.Intended, used[x.Key] = clone(&x), true
			return
		}
	}
	for _, x := range p.Done {
		if x.Key == c.CallID {
			c.Done = clone(&x)
		}
	}
}

// clone returns a pointer to a copy of *p, or nil.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// clone returns a copy of t.
func (t *PathTurn) clone() *PathTurn {
	c := *t
	c.Left, c.Hibernated = slices.Clone(t.Left), clone(t.Hibernated)
	return &c
}

// endOf reports how a turn of the path ended: by an abort_requested, and by a
// turn_completed.
func (s *ControlState) endOf(t *PathTurn) (aborted, completed bool) {
	for _, x := range s.Ended {
		if t.has(x.Seq) && (x.TurnID == t.ID || x.TurnID.IsZero()) {
			aborted, completed = aborted || x.Abort, completed || !x.Abort
		}
	}
	return aborted, completed
}

// consumed reports whether the turn was resumed from a hibernation. A nil one is.
func (s *ControlState) consumed(h *Hibernation) bool {
	return h == nil || slices.ContainsFunc(s.Resumed, func(c ConsumedCursor) bool { return c.CursorID == h.Cursor.ID })
}

// forgot reports whether the state may lack ends and cursors since the turn's start.
func (s *ControlState) forgot(t *PathTurn) bool {
	return len(s.Ended) == recentLimit && s.Ended[0].Seq > t.Seq || len(s.Resumed) == recentLimit && s.Resumed[0].Seq > t.Seq
}

// foldTurn folds the events since the turn's start, and drops nothing.
func foldTurn(ctx context.Context, log *eventlog.Log, l *Loaded, t *PathTurn) (*ControlState, error) {
	s := &ControlState{all: true}
	for e, err := range log.Read(ctx, l.Session, eventlog.Between(t.Seq, l.Head.Seq)) {
		if err == nil {
			err = s.apply(e.Effective())
		}
		if err != nil {
			return nil, fmt.Errorf("events of turn %s of session %q: %w", t.ID, l.Session, err)
		}
	}
	return s, nil
}

// hasArguments reports whether the effect was intended with the arguments.
func hasArguments(x *OpenEffect, arguments jsontext.Value) bool {
	if arguments == nil || x.ArgumentsDigest == "" {
		return false
	}
	digest, err := event.ArgumentsDigest(x.Nonce, arguments)
	return err == nil && digest == x.ArgumentsDigest
}
