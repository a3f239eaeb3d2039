package projection

import (
	"slices"

	"github.com/convlog/convlog/event"
)

// ChildList is the child runs with a session of their own, in the order of their
// first event.
type ChildList struct {
	Runs []ChildRun `json:"runs,omitzero"`
}

// ChildRun is a child run with a session.
type ChildRun struct {
	ChildID   string           `json:"child_id"`
	SessionID string           `json:"session_id"`
	State     event.ChildState `json:"state"`
	// Seq is the seq of the child's newest event.
	Seq int64 `json:"seq"`
}

// Children is the child runs of a session that have a session of their own. A fork or
// a copy does not inherit them.
func Children() Projection[ChildList] {
	return Projection[ChildList]{
		builtin: true, Name: "children", Version: 1, Scope: event.SessionScope, Apply: (*ChildList).apply, Digest: noDigest[ChildList],
	}
}

func (l *ChildList) apply(e *event.Event) error {
	if e.Type.Name() == event.SessionForked {
		l.Runs = nil
	}
	state, ok := e.Type.ChildState()
	if !ok || e.Inherited() {
		return nil
	}
	p, err := event.DecodeKept[event.Child](e)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Runs, func(r ChildRun) bool {
		return r.ChildID == p.ChildID && (p.ChildSessionID == "" || p.ChildSessionID == r.SessionID)
	})
	if i < 0 && p.ChildSessionID != "" {
		i = len(l.Runs)
		l.Runs = append(l.Runs, ChildRun{ChildID: p.ChildID, SessionID: p.ChildSessionID})
	}
	if i >= 0 {
		l.Runs[i].State, l.Runs[i].Seq = state, e.Seq
	}
	return nil
}
