package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/backward"
	"github.com/convlog/convlog/internal/line"
)

// conversation follows the tool calls of a session as Append does: a result must
// answer a call that is pending on the active path.
type conversation struct {
	calls backward.Calls
	// back is the newest event of the path that calls does not have yet.
	back   backward.Walk
	shares bool // the path begins in the parents
	asked  bool // whether the parents lost an event is known
	lost   bool
}

// inherit begins after event seq of the parent.
func (t *conversation) inherit(seq int64) {
	t.restart(seq)
	t.shares = seq > 0
}

func (t *conversation) restart(seq int64) {
	t.calls, t.back = backward.Calls{Complete: seq == 0}, backward.Walk{Next: seq}
}

// event notes the calls of an event, and follows a head_moved.
func (t *conversation) event(ctx context.Context, c *checker, e *event.Event, n *inspection) error {
	if n.facts.Moves {
		t.restart(min(n.facts.To, e.Seq-1))
	}
	for _, id := range n.facts.Outline.Results {
		if err := t.result(ctx, c, e, n, id); err != nil {
			return err
		}
	}
	for _, call := range n.facts.Outline.Calls {
		t.calls.Open(call.ID)
	}
	return nil
}

// result ends a call, or reports a result without a call.
func (t *conversation) result(ctx context.Context, c *checker, e *event.Event, n *inspection, id string) error {
	var err error
	if !t.calls.Has(id) && !c.damaged {
		err = t.searchBack(ctx, c, e.SessionID, id)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if t.calls.Has(id) {
		t.calls.Answer(id)
		return nil
	}
	if n.erased || c.damaged || slices.Contains(n.broken, event.OrphanResult) {
		return nil // the mark is erased, the call may be missing, or it is marked
	}
	if err == nil {
		lossy, err := t.lossy(ctx, c, e)
		if err != nil {
			return err
		}
		if !lossy {
			c.defect(e.Seq, string(event.OrphanResult), fmt.Sprintf("no call %q is pending", line.Clip(id)))
			return nil
		}
	}
	c.note(e.Seq, string(event.OrphanResult), fmt.Sprintf("no call %q is pending; it may be among the events that were lost", line.Clip(id)))
	return nil
}

// searchBack adds older messages of the path until call id is known.
func (t *conversation) searchBack(ctx context.Context, c *checker, session, id string) error {
	if t.back.Next == 0 || t.calls.Knows(id) {
		return nil
	}
	path := eventlog.Between(0, t.back.Next).OnPath().Backward()
	for e, err := range c.v.messages(ctx, session, path) {
		if err != nil {
			return err
		}
		if _, err := t.back.Step(&e); err != nil {
			return err
		}
		o, ok, err := event.OutlineOf(&e)
		if err != nil {
			return err
		}
		if ok {
			t.calls.AddOlder(&o)
		}
		if t.calls.Knows(id) {
			return nil
		}
	}
	t.calls.Complete = true
	return nil
}

// lossy reports whether an event before e in the lineage was lost.
func (t *conversation) lossy(ctx context.Context, c *checker, e *event.Event) (bool, error) {
	if len(c.lost) > 0 || !t.shares || t.asked {
		return len(c.lost) > 0 || t.lost, nil
	}
	for before, err := range c.v.log.Read(ctx, e.SessionID, eventlog.Between(0, e.Seq-1).Backward().Bare()) {
		if err != nil && ctx.Err() != nil {
			return false, err
		}
		if t.lost = err != nil || before.Type.Name() == event.Lost; t.lost {
			break
		}
	}
	t.asked = true
	return t.lost, nil
}

// messages reads events with the data of messages, and without other spilled data,
// which may be missing.
func (v *Verifier) messages(ctx context.Context, session string, r eventlog.Range) func(yield func(event.Event, error) bool) {
	return func(yield func(event.Event, error) bool) {
		for e, err := range v.log.Read(ctx, session, r.Bare()) {
			if err == nil && e.Data == nil && e.Type.Name() == event.MessageAdded {
				err = v.engine.Fetch(ctx, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
