package eventlog

import (
	"github.com/oklog/ulid/v2"
)

// Range selects events of a lineage, and the order they come in. All, From,
// Between, Last and Until make one; the methods narrow it.
type Range struct {
	span  Span
	last  int // of Last; -1 is no bound
	until ulid.ULID
	own   bool
	bare  bool
	path  bool
}

// All is the whole lineage, oldest first.
func All() Range { return Between(0, 0) }

// From selects the events from seq on.
func From(seq int64) Range { return Between(seq, 0) }

// Between selects the events from seq from to seq to, both included; 0 leaves a
// side open.
func Between(from, to int64) Range { return Range{span: Span{From: from, To: to}, last: -1} }

// Last selects the newest n events. They come oldest first.
func Last(n int) Range { return Range{last: max(n, 0)} }

// Until selects the events up to and including the event with id; backward, from
// the newest event back to it. The sequence ends with ErrEventNotFound if no event
// has that id.
func Until(id ulid.ULID) Range { return Range{until: id, last: -1} }

// Backward yields newest first.
func (r Range) Backward() Range {
	r.span.Backward = true
	return r
}

// OnPath selects events of one path only: the path that ends with the newest event
// in the range. For All that is the active path, which excludes the events that
// rewinds orphaned.
func (r Range) OnPath() Range {
	r.path = true
	return r
}

// Own excludes the events that a fork shares with its parent.
func (r Range) Own() Range {
	r.own = true
	return r
}

// Bare does not fetch spilled data: such events have no Data (Event.Spilled tells),
// and are read even if their blob is missing.
func (r Range) Bare() Range {
	r.bare = true
	return r
}
