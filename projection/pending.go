package projection

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Pending is what a session has to come back to.
type Pending struct {
	// Calls and Waits are open on the active path.
	Calls []OpenCall
	Waits []OpenWait
	// Approvals, Effects and Children are open in the session, rewound or not.
	Approvals []OpenApproval
	Effects   []OpenEffect
	Children  []OpenChild
	// Turn is the turn that the path is inside of, or nil; Cursor is where it
	// hibernates, nil if it does not or was resumed.
	Turn   *PathTurn
	Cursor *Hibernation
	// Claim is the newest run's, nil if it was released or none was made. It does
	// not say that the run is alive.
	Claim *Claim
}

// IsZero reports whether nothing is pending.
func (p *Pending) IsZero() bool {
	return len(p.Calls) == 0 && len(p.Waits) == 0 && len(p.Approvals) == 0 && len(p.Effects) == 0 && len(p.Children) == 0 && p.Turn == nil
}

// LoadPending gives what is pending at the head of a session. See Load for the
// errors.
func LoadPending(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Pending, error) {
	l, err := LoadSet(ctx, log, session, builtinSet("pending", Calls(), Control()), opts...)
	if err != nil {
		return Pending{}, err
	}
	return PendingOf(ctx, log, l)
}

// PendingOf is LoadPending for states that were loaded; the set must have Calls
// and Control, otherwise it is ErrInvalidSet. The log is read only about a turn
// that lies far behind others that ended since.
func PendingOf(ctx context.Context, log *eventlog.Log, l interface{ loaded() *Loaded }) (Pending, error) {
	path, hasPath := State(l, Calls())
	session, hasSession := State(l, Control())
	if !hasPath || !hasSession {
		return Pending{}, fmt.Errorf("%w: what is pending needs %s and %s", ErrInvalidSet, Calls().Name, Control().Name)
	}
	p := Pending{Calls: path.Calls, Waits: path.Waits, Approvals: session.Approvals, Effects: session.Effects,
		Children: session.Children, Claim: session.Claim}
	t := path.Turn
	if t == nil {
		return p, nil
	}
	ended, resumed, err := session.since(ctx, log, l.loaded(), t)
	if err != nil {
		return p, err
	}
	for _, x := range ended {
		if t.has(x.Seq) && (x.TurnID == t.ID || x.TurnID.IsZero()) {
			return p, nil
		}
	}
	p.Turn, p.Cursor = t, t.Hibernated
	for _, c := range resumed {
		if p.Cursor != nil && c.CursorID == p.Cursor.Cursor.ID {
			p.Cursor = nil
		}
	}
	return p, nil
}

// since are the turns that ended and the cursors that were consumed since a
// turn's start, from the log where they are not remembered any more.
func (s *ControlState) since(ctx context.Context, log *eventlog.Log, l *Loaded, t *PathTurn) ([]EndedTurn, []ConsumedCursor, error) {
	forgot := len(s.Ended) == remembered && s.Ended[0].Seq > t.Seq || len(s.Resumed) == remembered && s.Resumed[0].Seq > t.Seq
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
