package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/backward"
	"github.com/convlog/convlog/internal/line"
)

// checkHistory validates an entry against the older events of the session, and adds
// its calls and results to the open calls.
func (st *sessionState) checkHistory(ctx context.Context, en *entry, lenient bool) error {
	f := &en.facts
	if f.Invalid != nil {
		if err := en.forgive(f.Invalid, lenient); err != nil {
			return err
		}
	}
	if f.Fork != nil && !st.staged.head.IsZero() && !en.Copied() {
		return fmt.Errorf("%w: session_forked is allowed only at the start of a session", event.ErrInvalidTree)
	}
	if f.Moves {
		if f.To < 0 || f.To > st.staged.head.Seq {
			return fmt.Errorf("%w: head_moved to %d, beyond the head at %d", event.ErrInvalidTree, f.To, st.staged.head.Seq)
		}
		st.calls.restart(f.To)
	}
	for _, id := range f.Outline.Results {
		pending, err := st.isPending(ctx, id)
		if err != nil {
			return err
		}
		if pending {
			st.calls.set.Answer(id)
		} else if err := en.forgive(fmt.Errorf("%w: no call %q is pending", event.OrphanResult, line.Clip(id)), lenient); err != nil {
			return err
		}
	}
	for _, call := range f.Outline.Calls {
		if !st.calls.set.Has(call.ID) {
			st.calls.set.Open(call.ID)
		}
	}
	return nil
}

// forgive accepts a broken rule of conversation in a lenient append: it adds the name
// of the rule to the metadata. It refuses a broken rule of structure, and every broken
// rule in a strict append.
func (en *entry) forgive(broken error, lenient bool) error {
	if rule, ok := errors.AsType[event.Rule](broken); ok && rule.Conversation() && lenient {
		return en.MarkBroken(rule)
	}
	return broken
}

// checkFork checks that the parent has the event at the fork point.
func (l *Log) checkFork(ctx context.Context, session string, f *event.Fork) error {
	if f.Parent == session {
		return fmt.Errorf("%w: session %q cannot be forked from itself", event.ErrInvalidTree, session)
	}
	if f.Seq == 0 {
		_, err := l.Head(ctx, f.Parent)
		return err
	}
	e, err := l.bareEvent(ctx, f.Parent, f.Seq)
	if err != nil {
		return fmt.Errorf("fork point: %w", err)
	}
	if e.Hash() != f.Hash || e.ID != f.EventID {
		return fmt.Errorf("%w: event %d of %q is not the event that session_forked names", event.ErrInvalidTree, f.Seq, f.Parent)
	}
	if e.More() > 0 {
		return fmt.Errorf("%w: event %d of %q is inside an atomic append", event.ErrInvalidTree, f.Seq, f.Parent)
	}
	return nil
}

// openCalls are the pending tool calls at the end of the active path. They are exact
// for the events since restart; searchBack adds older events.
type openCalls struct {
	set backward.Calls
	// walk is at the newest event of the path that the set does not have yet.
	walk backward.Walk
}

// restart forgets all calls. The path ends with event seq.
func (c *openCalls) restart(seq int64) {
	*c = openCalls{set: backward.Calls{Complete: seq == 0}, walk: backward.Walk{Next: seq}}
}

// isPending reports whether a call is pending after the staged events. It reads
// older events of the path until one decides.
func (st *sessionState) isPending(ctx context.Context, id string) (bool, error) {
	c := &st.calls
	for c.walk.Next > 0 && !c.set.Knows(id) {
		if err := st.searchBack(ctx, id); err != nil {
			return false, fmt.Errorf("search back for call %q: %w", line.Clip(id), err)
		}
	}
	return c.set.Has(id), nil
}

// searchBack adds older events of the path, first staged events, then stored events. It
// stops at an event that decides on call id, and at an event whose parent is not the
// event before it.
func (st *sessionState) searchBack(ctx context.Context, id string) error {
	c := &st.calls
	for c.walk.Next > st.tail.head.Seq && len(st.staged.events) > 0 && c.walk.Next >= st.staged.events[0].Seq {
		e := &st.staged.events[c.walk.Next-st.staged.events[0].Seq]
		if turned, err := c.addOlder(e); err != nil || turned || c.set.Knows(id) {
			return err
		}
	}
	if c.walk.Next == 0 {
		return nil
	}
	session := st.session
	if st.tail.head.IsZero() && st.staged.fork != nil {
		session = st.staged.fork.Parent
	}
	for e, err := range st.log.lineage(ctx, session, Span{To: c.walk.Next, Backward: true}, false) {
		if err == nil && (e.Type.Name() == event.MessageAdded || e.Type.Name() == event.HeadMoved) {
			err = st.log.resolve(ctx, &e) // other events have no calls in their data
		}
		if err != nil {
			return err
		}
		if turned, err := c.addOlder(&e); err != nil || turned || c.set.Knows(id) {
			return err
		}
	}
	if c.walk.Next == 0 {
		return nil
	}
	return damaged(session, c.walk.Next, errPathEnds)
}

var errPathEnds = errors.New("an event of the active path is missing")

// addOlder adds the next older event of the path. turned is true if the parent of the
// event is not the event before it.
func (c *openCalls) addOlder(e *event.Event) (turned bool, err error) {
	if onPath, err := c.walk.Step(e); err != nil || !onPath {
		return false, onTree(e, err)
	}
	o, ok, err := event.OutlineOf(e)
	if err != nil {
		return false, err
	}
	if ok {
		c.set.AddOlder(&o)
	}
	c.set.Complete = c.walk.Next == 0
	return c.walk.Next != e.Seq-1, nil
}

// onTree makes an event with an impossible place in the tree a *CorruptError.
func onTree(e *event.Event, err error) error {
	if errors.Is(err, event.ErrInvalidTree) {
		return damaged(e.SessionID, e.Seq, err)
	}
	return err
}
