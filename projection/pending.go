package projection

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Pending is the open work of a session: a program decides about it when it resumes.
// It is a copy: later events do not change it.
type Pending struct {
	// Calls and Waits are open on the active path.
	Calls []PendingCall
	Waits []OpenWait
	// Approvals, Effects and Children are open in the session. A rewind does not
	// close them.
	Approvals []OpenApproval
	Effects   []OpenEffect
	Children  []OpenChild
	// Turn is the open turn of the path, or nil. Cursor is its hibernation. Cursor is
	// nil if the turn does not hibernate or was resumed.
	Turn   *PathTurn
	Cursor *Hibernation
	// NextTurn is the index of the next turn_started.
	NextTurn int
	// Claim is the newest claim of a run, nil if there is none or it was released. It
	// does not say whether the run is alive.
	Claim *Claim
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

// IsZero reports whether nothing is pending.
func (p *Pending) IsZero() bool {
	return len(p.Calls) == 0 && len(p.Waits) == 0 && len(p.Approvals) == 0 && len(p.Effects) == 0 && len(p.Children) == 0 && p.Turn == nil
}

// LoadPending loads the pending work at the head of a session. Load lists the errors.
func LoadPending(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Pending, error) {
	l, err := LoadSet(ctx, log, session, builtinSet("pending", Calls(), Control()), opts...)
	if err != nil {
		return Pending{}, err
	}
	return PendingOf(ctx, log, l)
}

// PendingOf is LoadPending for loaded states. The error is ErrInvalidSet if the set
// lacks Calls or Control. It reads the messages with pending calls from the log. If
// more than 32 turns ended since the path's last turn began, it also reads the events
// since then.
//
// An effect belongs to a call if its key is the call's id, or if it has the call's
// name and the digest of the call's arguments.
func PendingOf(ctx context.Context, log *eventlog.Log, l States) (Pending, error) {
	path, hasPath := State(l, Calls())
	session, hasSession := State(l, Control())
	if !hasPath || !hasSession {
		return Pending{}, fmt.Errorf("%w: pending work needs the projections %s and %s", ErrInvalidSet, Calls().Name, Control().Name)
	}
	p := Pending{Waits: slices.Clone(path.Waits), Approvals: slices.Clone(session.Approvals),
		Effects: slices.Clone(session.Effects), Children: slices.Clone(session.Children), Claim: clone(session.Claim)}
	var err error
	if p.Calls, err = pendingCalls(ctx, log, l.loaded().Session, path, session); err != nil {
		return Pending{}, err
	}
	if path.Turn != nil {
		p.NextTurn = path.Turn.Index + 1
		err = p.openTurn(ctx, log, l.loaded(), path.Turn, session)
	}
	return p, err
}

// openTurn sets Turn and Cursor, unless the turn ended.
func (p *Pending) openTurn(ctx context.Context, log *eventlog.Log, l *Loaded, t *PathTurn, session *ControlState) error {
	ended, resumed, err := session.since(ctx, log, l, t)
	if err != nil {
		return err
	}
	for _, x := range ended {
		if t.has(x.Seq) && (x.TurnID == t.ID || x.TurnID.IsZero()) {
			return nil
		}
	}
	p.Turn = clone(t)
	p.Turn.Left, p.Turn.Hibernated = slices.Clone(t.Left), clone(t.Hibernated)
	p.Cursor = clone(t.Hibernated)
	for _, c := range resumed {
		if p.Cursor != nil && c.CursorID == p.Cursor.Cursor.ID {
			p.Cursor = nil
		}
	}
	return nil
}

// pendingCalls returns the open calls of a path with their arguments and effects.
func pendingCalls(ctx context.Context, log *eventlog.Log, session string, path *CallState, control *ControlState) (calls []PendingCall, err error) {
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
		c.findEffect(control, used)
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
func (c *PendingCall) findEffect(s *ControlState, used map[string]bool) {
	for _, x := range s.Effects {
		same := x.Name != "" && x.Name == c.Name && hasArguments(&x, c.Arguments)
		if !used[x.Key] && (x.Key == c.CallID || same) {
			c.Intended, used[x.Key] = clone(&x), true
			return
		}
	}
	for _, x := range s.Done {
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

// since returns the turns that ended and the cursors that were consumed since a
// turn's start. If the state may lack some of them, it reads the log.
func (s *ControlState) since(ctx context.Context, log *eventlog.Log, l *Loaded, t *PathTurn) ([]EndedTurn, []ConsumedCursor, error) {
	forgot := len(s.Ended) == recentLimit && s.Ended[0].Seq > t.Seq || len(s.Resumed) == recentLimit && s.Resumed[0].Seq > t.Seq
	if !forgot {
		return s.Ended, s.Resumed, nil
	}
	var ended []EndedTurn
	var resumed []ConsumedCursor
	for e, err := range log.Read(ctx, l.Session, eventlog.Between(t.Seq, l.Head.Seq)) {
		if err != nil {
			return nil, nil, err
		}
		e := e.Effective()
		switch e.Type.Name() {
		case event.TurnCompleted:
			p, err := event.DecodeKept[event.TurnCompletion](e)
			if err != nil {
				return nil, nil, err
			}
			ended = append(ended, EndedTurn{Seq: e.Seq, TurnID: p.TurnID, Status: p.Status})
		case event.TurnResumed:
			p, err := event.DecodeKept[event.TurnResumption](e)
			if err != nil {
				return nil, nil, err
			}
			resumed = append(resumed, ConsumedCursor{Seq: e.Seq, CursorID: p.CursorID})
		}
	}
	return ended, resumed, nil
}

// hasArguments reports whether the effect was intended with the arguments.
func hasArguments(x *OpenEffect, arguments jsontext.Value) bool {
	if arguments == nil || x.ArgumentsDigest == "" {
		return false
	}
	digest, err := event.ArgumentsDigest(x.Nonce, arguments)
	return err == nil && digest == x.ArgumentsDigest
}
