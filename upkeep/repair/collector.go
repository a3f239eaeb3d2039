package repair

import (
	"cmp"
	"context"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
)

// collector reads chosen lines in the order of their seqs. The storage yields lines in
// the order of their places only, so the collector buffers lines that it needs later.
type collector struct {
	*salvage
	ctx    context.Context
	pull   func() (eventlog.Fragment, error, bool)
	stop   func()
	place  int64                 // of the next fragment
	buffer map[int64]event.Event // lines for later, by place
	bytes  int                   // of the lines in buffer
	backup backedUp
}

// maxBuffer is the largest buffer of a collector, in bytes. If the buffer is full, the
// collector empties it, and later reads the storage again.
const maxBuffer = 64 << 20

func (c *collector) close() {
	c.backup.close()
	if c.stop != nil {
		c.stop()
	}
}

// read reads a chosen line.
func (c *collector) read(f *foundLine) (event.Event, error) {
	if f.copied {
		return c.backup.read(c.ctx, c.salvage, f)
	}
	if e, ok := c.buffer[f.place]; ok {
		delete(c.buffer, f.place)
		c.bytes -= len(e.Line())
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
			return fragment.Event.Clone(), nil
		}
		if c.late[c.place-1] {
			c.keep(c.place-1, fragment.Event.Clone())
		}
	}
}

func (c *collector) restart() {
	if c.stop != nil {
		c.stop()
	}
	salvager, _ := eventlog.As[eventlog.Salvager](c.log.Store())
	c.pull, c.stop = iter.Pull2(salvager.Fragments(c.ctx, c.session))
	c.place = 0
}

// unread gives back the line that was read last.
func (c *collector) unread(f *foundLine, e event.Event) {
	if f.copied {
		c.backup.next = &e
		return
	}
	c.keep(f.place, e)
}

// keep buffers a line for later.
func (c *collector) keep(place int64, e event.Event) {
	if c.bytes > maxBuffer {
		c.buffer, c.bytes = nil, 0
	}
	if c.buffer == nil {
		c.buffer = map[int64]event.Event{}
	}
	c.buffer[place] = e
	c.bytes += len(e.Line())
}

// changed is the error of a storage that has changed after survey.
func (c *collector) changed() error {
	return &eventlog.ConflictError{Session: c.session}
}
