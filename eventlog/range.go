package eventlog

import (
	"github.com/oklog/ulid/v2"
)

// Range selects events of a session and of the parents of a fork, and their order.
// All, From, Between and Last make a Range; its methods narrow it. The zero
// Range selects nothing.
type Range struct {
	span  Span
	last  int // the argument of Last; -1 is no bound
	until ulid.ULID
	own   bool
	bare  bool
	path  bool
}

// All selects all events, oldest first.
func All() Range { return Between(0, 0) }

// From selects event seq and all later events, oldest first.
func From(seq int64) Range { return Between(seq, 0) }

// Between selects the events with seqs from..to, both included, oldest first; 0 leaves
// a side open.
func Between(from, to int64) Range { return Range{span: Span{From: from, To: to}, last: -1} }

// Last selects the newest n events, oldest first.
func Last(n int) Range { return Range{last: max(n, 0)} }

// Until ends the range at the event with that id, included. It is for All: All().Until(id)
// selects the events up to that event, and with Backward the newest events back to it. If
// no event has the id, the sequence ends with ErrEventNotFound.
func (r Range) Until(id ulid.ULID) Range {
	r.until = id
	return r
}

// Backward yields newest first.
func (r Range) Backward() Range {
	r.span.Backward = true
	return r
}

// OnPath selects only events of the path to the newest event of the range. For All this
// is the active path; it excludes the events that rewinds orphaned.
func (r Range) OnPath() Range {
	r.path = true
	return r
}

// Own excludes the events that a fork shares with its parent.
func (r Range) Own() Range {
	r.own = true
	return r
}

// Bare does not fetch spilled data. A spilled event (Event.Spilled) then has no Data,
// and Read yields it even if its blob is missing.
func (r Range) Bare() Range {
	r.bare = true
	return r
}

// Transient makes a long read cheaper: an event and its bytes are valid only until the
// loop continues. The caller must copy what it keeps. A payload that event.Decode
// returned is a copy.
func (r Range) Transient() Range {
	r.span.Transient = true
	return r
}
