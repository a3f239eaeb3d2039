package eventlog

import (
	"context"
	"fmt"
	"slices"
)

// talk follows the tool calls of a session as Append does: a result must be of
// a call that is pending on the active path.
type talk struct {
	state   state // of which only the calls are used
	parents bool  // some of the path is the parents'
	asked   bool  // whether anything was lost in them
	lost    bool
}

// inherit begins behind event seq of the parent.
func (t *talk) inherit(seq int64) {
	t.state.calls = calls{back: seq}
	t.parents = seq > 0
}

// take takes in what an event says of calls and of the path.
func (t *talk) take(ctx context.Context, v *verifier, e *Event, n *inspection) error {
	f := &n.facts
	if f.moves {
		t.state.calls.move(min(f.to, e.Seq-1))
	}
	for _, id := range f.results {
		if err := t.result(ctx, v, e, n, id); err != nil {
			return err
		}
	}
	for _, id := range f.calls {
		t.state.calls.open(id)
	}
	return nil
}

// result ends a call, or reports that there is none.
func (t *talk) result(ctx context.Context, v *verifier, e *Event, n *inspection, id string) error {
	c := &t.state.calls
	open, err := c.isPending(id), error(nil)
	if !open && !v.damaged {
		open, err = v.log.isOpen(ctx, e.SessionID, &t.state, id)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if open {
		c.end(id)
		return nil
	}
	if n.erased || v.damaged || slices.Contains(n.broken, orphanResult) {
		return nil // the mark is gone, the call may be, or it is marked
	}
	if err == nil {
		lost, err := t.lossy(ctx, v, e)
		if err != nil {
			return err
		}
		if !lost {
			v.defect(e.Seq, orphanResult, fmt.Sprintf("no call %q is pending", clip(id)))
			return nil
		}
	}
	v.note(e.Seq, orphanResult, fmt.Sprintf("no call %q is pending; it may be among the events that were lost", clip(id)))
	return nil
}

// lossy reports whether something was lost before e in the lineage.
func (t *talk) lossy(ctx context.Context, v *verifier, e *Event) (bool, error) {
	if len(v.lost) > 0 || !t.parents || t.asked {
		return len(v.lost) > 0 || t.lost, nil
	}
	for before, err := range v.log.lineage(ctx, e.SessionID, Between(0, e.Seq-1).Backward()) {
		if err != nil && ctx.Err() != nil {
			return false, err
		}
		if t.lost = err != nil || before.Type.Name() == Lost; t.lost {
			break
		}
	}
	t.asked = true
	return t.lost, nil
}
