package runlog

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/runlog/internal/turns"
)

// bounds folds turn_started and turn_completed.
func (b *turnBuilder) bounds() error {
	if b.e.Type.Name() == event.TurnStarted {
		p, err := event.DecodeKept[event.TurnStart](b.e)
		b.turn.Agent = cmp.Or(p.Agent, b.turn.Agent)
		b.turn.external = b.external[p.InputID]
		return err
	}
	p, err := event.DecodeKept[event.TurnCompletion](b.e)
	t := b.turn
	if !p.TurnID.IsZero() {
		t = b.byID[p.TurnID]
	}
	if t != nil {
		b.end(t, turnEnd{status: p.Status.Known(), reason: p.StopReason, err: p.Error})
		if turns.IsWork(b.e) || t.Ended.IsZero() {
			t.Ended = b.e.Timestamp
		}
	}
	return err
}

// abort folds an abort_requested of the open turn. A fork or a copy does not inherit it.
func (b *turnBuilder) abort() error {
	p, _, err := event.Decode[event.Abort](b.e)
	if t := b.turn; t != nil && !b.inherited && !b.e.Copied() && (p.TurnID.IsZero() || p.TurnID == t.ID) {
		b.end(t, turnEnd{status: event.TurnStatusAborted, abort: true})
	}
	return err
}

// turnEnd is an event that ends a turn.
type turnEnd struct {
	status      event.TurnStatus
	reason, err string
	abort       bool // an abort_requested, which a turn_completed may follow
	orphaned    bool
}

// end adds an end of a turn.
func (b *turnBuilder) end(t *Turn, x turnEnd) {
	x.orphaned = !b.onPath
	t.ends = append(t.ends, x)
}

// close sets the status of a turn. The first end on the path counts; on an orphaned
// branch, the end of the newest attempt. The reason of an abort is in the turn_completed
// after it.
func (t *Turn) close() {
	if t.Orphaned {
		if n := len(t.ends) - 1; n > 0 && t.ends[n-1].abort {
			t.ends = t.ends[n-1:]
		} else if n > 0 {
			t.ends = t.ends[n:]
		}
	}
	for _, x := range t.ends {
		switch {
		case x.orphaned && !t.Orphaned:
		case t.Status == "":
			t.Status, t.StopReason, t.Error = x.status, x.reason, x.err
		case t.Status == event.TurnStatusAborted && t.StopReason == "":
			t.StopReason, t.Error = x.reason, x.err
		}
	}
	t.ends = nil
}

// infer sets the status of a turn without a turn_completed.
func (t *Turn) infer() {
	open := slices.ContainsFunc(t.Ops, func(o *Op) bool { return o.Status == OpOpen && o.Kind != SystemOp })
	if t.Status == "" && t.ID.IsZero() && t.Output != nil && !open {
		t.Status = event.TurnStatusCompleted
	}
}

func (t *Turn) outcome() OpStatus {
	switch t.Status {
	case "":
		return OpOpen
	case event.TurnStatusFailed:
		return OpFailed
	}
	return OpOK
}
