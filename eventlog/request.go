package eventlog

import (
	"context"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// request is one append, or one operation that needs the session exclusively.
type request struct {
	ctx     context.Context
	expect  Expect
	entries []entry
	// stored, if set, gets the events as they are stored, unless they were before.
	stored *[]event.Event
	// exclusive, if set, runs instead of an append.
	exclusive func(ctx context.Context, st *sessionState) error

	// after is the head after which the events may be stored already: an earlier
	// try of this log had an unknown outcome there.
	after *event.Head
	// unlock ends the store lock that the append is made under. The leader calls
	// it if the caller has left: the events may still be written, and their blobs
	// must not be removed before.
	unlock func()

	lead chan struct{} // closed to make it the leader
	done chan struct{} // closed when a leader has decided on it

	// hotSession.mu guards these.
	taken     bool // a leader took it, or made it the leader
	abandoned bool // its caller left while it was in flight

	// The leader sets these.
	head    event.Head
	err     error
	staged  bool // it is to be written with the batch
	decided bool // refused or stored already, whatever becomes of the batch

	one [1]entry
}

// entry is an event on its way into the log.
type entry struct {
	event.Event
	more  int32
	blobs []event.Digest // that the line needs, sorted
	// spilled is the blob with the data, if it was spilled.
	spilled event.BlobRef
	facts   event.Facts
}

// requests are reused: appends of one event are the common case, and need no other
// allocation.
var requests = sync.Pool{New: func() any { return new(request) }}

// newRequest makes a request for one or more appends, with copies of the events.
func newRequest(ctx context.Context, expect Expect, appends ...[]event.Event) *request {
	r := requests.Get().(*request)
	r.ctx, r.expect = ctx, expect
	r.entries = r.one[:0]
	for _, events := range appends {
		for i := range events {
			r.entries = append(r.entries, entry{Event: events[i], more: int32(len(events) - 1 - i)})
		}
	}
	return r
}

// recycle returns a request that no leader will touch any more to the pool.
func (r *request) recycle() {
	*r = request{}
	requests.Put(r)
}

// size bounds the bytes of the request's lines.
func (r *request) size() (n int) {
	for i := range r.entries {
		n += r.entries[i].size()
	}
	return n
}

// lineOverhead bounds the bytes of a line besides its variable parts.
const lineOverhead = 512

// size bounds the length of the entry's line, newline included.
func (en *entry) size() int {
	n := lineOverhead + 2*len(en.SessionID) + 2*len(en.Type) + len(en.Metadata) + len(en.Extras()) + 80*len(en.blobs)
	if en.spilled.IsZero() {
		n += len(en.Data)
	}
	return n
}

// digest is the digest of the entry's data.
func (en *entry) digest() event.Digest {
	if !en.spilled.IsZero() {
		return en.spilled.Blob
	}
	return event.DigestOf(en.Data)
}

// line is the entry as a line to be sealed.
func (en *entry) line() line.Line {
	l := line.Line{
		Seq: en.Seq, ID: en.ID, Session: en.SessionID, Type: string(en.Type), Timestamp: en.Timestamp, Cost: int64(en.Cost),
		More: en.more, Blobs: digestStrings(en.blobs), Metadata: en.Metadata, Extras: en.Extras(),
		Digest: string(en.spilled.Blob), Bytes: en.spilled.Bytes,
	}
	if en.spilled.IsZero() {
		l.Data = en.Data
	}
	return l
}

func digestStrings(digests []event.Digest) (texts []string) {
	for _, d := range digests {
		texts = append(texts, string(d))
	}
	return texts
}
