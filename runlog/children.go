package runlog

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
)

// children makes the child runs of ops.
type children struct {
	*current
	*opIndex
	runs map[string]*ChildOp // by child id
}

// fold folds an event of a child run. It belongs to the op of the effect whose key is the
// child's id, else to the op of the call or the effect that started the run, else to an op
// of its own.
func (b *children) fold() (*Op, error) {
	p, err := event.DecodeKept[event.Child](b.e)
	if err != nil {
		return nil, err
	}
	state, _ := b.e.Type.ChildState()
	op := b.waiting["child "+p.ChildID]
	if op == nil {
		start := b.starts[p.ParentEventID]
		if op = cmp.Or(b.keys[p.ChildID], b.find(p.CallID, start[0], start[1])); op == nil {
			op = b.begin(SystemOp, p.ChildID, "child")
		}
		b.waiting["child "+p.ChildID] = op
	}
	c := b.runs[p.ChildID]
	if c == nil {
		c = &ChildOp{ID: p.ChildID, Inherited: b.inherited}
		b.runs[p.ChildID], op.Children = c, append(op.Children, c)
	}
	c.update(&p, state)
	b.logTo(&op.Logs, LogLine{Seq: b.e.Seq, Time: b.e.Timestamp, Type: b.e.Type, Text: cmp.Or(p.Message, p.Summary), Value: b.e.Data})
	if op.Kind == SystemOp && !op.effect && state.Ended() {
		op.Error = p.Error
		op.end(b.e, statusOf(state == event.ChildFailed))
	}
	return op, nil
}

func (c *ChildOp) update(p *event.Child, state event.ChildState) {
	if state == event.ChildMerged {
		c.Merged = true
	} else {
		if state != event.ChildBlocked || c.State != state {
			c.InterruptIDs = nil
		}
		c.State = state
	}
	if state == event.ChildBlocked && p.InterruptID != "" && !slices.Contains(c.InterruptIDs, p.InterruptID) {
		c.InterruptIDs = append(c.InterruptIDs, p.InterruptID)
	}
	c.SessionID, c.Agent, c.Mode = cmp.Or(p.ChildSessionID, c.SessionID), cmp.Or(p.Agent, c.Agent), cmp.Or(p.Mode, c.Mode)
	c.Task, c.Summary, c.Error = cmp.Or(p.Task, c.Task), cmp.Or(p.Summary, c.Summary), cmp.Or(p.Error, c.Error)
}
