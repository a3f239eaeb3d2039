package repair

import (
	"cmp"
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
)

// collector reads chosen lines in the order of their seqs, from a storage that can
// only be read in the order of places.
type collector struct {
	*salvage
	ctx    context.Context
	pull   func() (eventlog.Fragment, error, bool)
	stop   func()
	place  int64                 // of the fragment that comes next
	held   map[int64]event.Event // lines that were passed, by place
	weight int                   // their bytes
}

// heldBytes bounds the lines that a collector holds. Beyond it the storage is read
// again.
const heldBytes = 64 << 20

func (c *collector) close() {
	if c.stop != nil {
		c.stop()
	}
}

// read reads a chosen line.
func (c *collector) read(f *found) (event.Event, error) {
	if e, ok := c.held[f.place]; ok {
		delete(c.held, f.place)
		c.weight -= len(e.Line())
		return e, nil
	}
	if c.stop == nil || f.place < c.place {
		c.restart()
	}
	for {
		fragment, err, ok := c.pull()
		if !ok || err != nil {
			return event.Event{}, cmp.Or(err, c.changed())
		}
		c.place++
		if c.place == f.place+1 {
			if fragment.Err != nil || fragment.Event.Seq != f.seq || line.Hash(fragment.Event.Hash()) != f.hash {
				return event.Event{}, c.changed()
			}
			return fragment.Event, nil
		}
		if c.late[c.place-1] {
			c.hold(c.place-1, fragment.Event)
		}
	}
}

func (c *collector) restart() {
	c.close()
	salvager, _ := eventlog.As[eventlog.Salvager](c.log.Store())
	c.pull, c.stop = iter.Pull2(salvager.Fragments(c.ctx, c.session))
	c.place = 0
}

// hold keeps a line that is needed later.
func (c *collector) hold(place int64, e event.Event) {
	if c.weight > heldBytes {
		c.held, c.weight = nil, 0
	}
	if c.held == nil {
		c.held = map[int64]event.Event{}
	}
	c.held[place] = e
	c.weight += len(e.Line())
}

// changed is the error of a storage that changed since it was surveyed.
func (c *collector) changed() error {
	return &eventlog.ConflictError{Session: c.session}
}
