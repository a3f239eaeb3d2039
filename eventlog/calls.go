package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// openCalls tracks which tool calls are pending at the end of the active path:
// exactly for the events it was given, and by searching back for older ones.
type openCalls struct {
	set event.PendingCalls
	// walk is at the newest event of the path that the set does not have yet.
	walk event.Walk
}

// restart forgets all calls. The path ends with event seq.
func (c *openCalls) restart(seq int64) {
	*c = openCalls{set: event.PendingCalls{Complete: seq == 0}, walk: event.Walk{Next: seq}}
}

// isPending reports whether a call is pending after the staged events. It reads
// older events of the path until it knows.
func (l *Log) isPending(ctx context.Context, session string, st *sessionState, id string) (bool, error) {
	c := &st.calls
	for c.walk.Next > 0 && !c.set.Knows(id) {
		if err := l.searchBack(ctx, session, st, id); err != nil {
			return false, fmt.Errorf("search back for call %q: %w", line.Clip(id), err)
		}
	}
	return c.set.Has(id), nil
}

// searchBack adds older events of the path until call id is known, or the path
// turns away from the events being read.
func (l *Log) searchBack(ctx context.Context, session string, st *sessionState, id string) error {
	c := &st.calls
	for c.walk.Next > st.known.head.Seq && len(st.staged.events) > 0 && c.walk.Next >= st.staged.events[0].Seq {
		e := &st.staged.events[c.walk.Next-st.staged.events[0].Seq]
		if turned, err := c.addOlder(e); err != nil || turned || c.set.Knows(id) {
			return err
		}
	}
	if c.walk.Next == 0 {
		return nil
	}
	if st.known.head.IsZero() && st.staged.fork != nil {
		session = st.staged.fork.Parent
	}
	for e, err := range l.lineage(ctx, session, Span{To: c.walk.Next, Backward: true}, false) {
		if err == nil && (e.Type.Name() == event.MessageAdded || e.Type.Name() == event.HeadMoved) {
			err = l.resolve(ctx, &e) // bodies of other events are not needed
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

// addOlder adds the next older event of the path. turned says that its parent is
// not the event before it.
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

// onTree locates an error of an event's place in the tree: it is damage.
func onTree(e *event.Event, err error) error {
	if errors.Is(err, event.ErrInvalidTree) {
		return damaged(e.SessionID, e.Seq, err)
	}
	return err
}
