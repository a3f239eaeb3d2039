package flow

import (
	"bytes"
	linked "container/list"
)

// The bounds of unread. maxUnread counts chunks with a delta or a progress value,
// maxUnreadBytes the bytes of their deltas. Joined deltas have at most maxJoined bytes.
const (
	maxUnread      = 1024
	maxUnreadBytes = 1 << 20
	maxJoined      = 16 << 10
)

// unread is the queue of the chunks that a client has not read. Deltas of one part are joined.
// Over its bounds the queue drops the oldest deltas and progress values; all other chunks are
// in the log and stay. Each operation costs constant time for each byte.
type unread struct {
	chunks   linked.List     // of *unreadChunk
	volatile linked.List     // of the elements of chunks with a delta or a progress value
	patch    *linked.Element // the chunk with a patch, nil if there is none
	bytes    int             // of the deltas
	lost     int             // deltas and progress values that were dropped since the last pop
}

// unreadChunk is a chunk in the queue.
type unreadChunk struct {
	item
	text     bytes.Buffer    // of the joined deltas
	pieces   int             // deltas and progress values
	volatile *linked.Element // in unread.volatile
}

func (c *unreadChunk) isVolatile() bool { return c.Delta != nil || c.Progress != nil }

// joins reports whether a delta is the next piece of the part.
func (c *unreadChunk) joins(next *Chunk) bool {
	a, b := c.Delta, next.Delta
	return a != nil && b != nil && c.Attempt == next.Attempt && a.Message == b.Message && a.Part == b.Part && a.Kind == b.Kind &&
		c.text.Len()+len(b.Text) <= maxJoined
}

func (u *unread) push(x item) {
	if e := u.chunks.Back(); e != nil {
		if last := e.Value.(*unreadChunk); last.joins(&x.Chunk) {
			u.addText(last, x.Delta.Text)
			return
		}
	}
	c := &unreadChunk{item: x}
	e := u.chunks.PushBack(c)
	if len(c.Patch) > 0 {
		u.patch = e
	}
	if !c.isVolatile() {
		return
	}
	c.volatile = u.volatile.PushBack(e)
	text := ""
	if c.Delta != nil {
		text = c.Delta.Text
	}
	u.addText(c, text)
}

// addText adds a piece to a chunk, and drops the oldest chunks over the bounds.
func (u *unread) addText(c *unreadChunk, text string) {
	c.text.WriteString(text)
	c.pieces++
	for u.bytes += len(text); u.volatile.Len() > 1 && (u.volatile.Len() > maxUnread || u.bytes > maxUnreadBytes); {
		oldest := u.volatile.Front().Value.(*linked.Element)
		u.lost += oldest.Value.(*unreadChunk).pieces
		u.remove(oldest)
	}
}

func (u *unread) remove(e *linked.Element) {
	c := u.chunks.Remove(e).(*unreadChunk)
	if c.volatile != nil {
		u.volatile.Remove(c.volatile)
		u.bytes -= c.text.Len()
	}
	if u.patch == e {
		u.patch = nil
	}
}

// dropPatch removes the patch from the queue; false if there is none.
func (u *unread) dropPatch() bool {
	if u.patch == nil {
		return false
	}
	u.remove(u.patch)
	return true
}

// pop removes the oldest chunk; false if there is none.
func (u *unread) pop() (x item, ok bool) {
	e := u.chunks.Front()
	if e == nil {
		return x, false
	}
	c := e.Value.(*unreadChunk)
	u.remove(e)
	if c.Delta != nil {
		d := *c.Delta
		d.Text = c.text.String()
		c.Delta = &d
	}
	c.Lost, u.lost = u.lost, 0
	return c.item, true
}
