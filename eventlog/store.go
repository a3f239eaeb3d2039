package eventlog

import (
	"cmp"
	"context"
	"iter"

	"github.com/convlog/convlog/event"
)

// Store is the interface of a backend. Programs use a Log over a Store, as they use
// database/sql over a driver.
//
// A store stores finished lines verbatim. It makes one decision: whether the head of a
// session is the expected head. It assigns and validates nothing else. All methods may
// be called concurrently. Package store/storetest tests each promise below.
type Store interface {
	// Append writes the events' lines after expect, all or none, in order.
	//
	// It compares expect with the session's head under the lock that excludes
	// every other writer, in this process and others; the zero Head means the
	// session must not exist. A mismatch is a *ConflictError with the actual
	// head, and nothing is written. A store that has removed a torn tail
	// returns a ConflictError with Cut set, until the first event of an append
	// names that cut.
	//
	// When Append returns nil the lines are readable. They are durable as the
	// store's sync policy says, and always if durable is true. An error that
	// leaves the outcome open is an *UnknownOutcomeError; any other error means
	// that nothing was written. Append honours ctx while it waits. If ctx ends after
	// the write has begun, Append may return an UnknownOutcomeError.
	//
	// The store does not keep or change the events after Append returns.
	Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error

	// Read yields the session's own events of r in r's direction, consistent
	// with the head at its start, each checked against its crc. A missing
	// session is ErrNotFound; damage is a *CorruptError that names the place.
	// The first error ends the sequence. Read yields complete appends only.
	// The caller may keep the events, unless r is transient: the store does not reuse
	// their bytes.
	Read(ctx context.Context, session string, r Span) iter.Seq2[event.Event, error]

	// Sessions yields every session of the store, ordered by id. It may leave out a session
	// that is removed meanwhile.
	Sessions(ctx context.Context) iter.Seq2[SessionInfo, error]

	// Close syncs the appends that were acknowledged under a relaxed sync policy,
	// and releases everything. Later calls return ErrClosed.
	Close() error
}

// Span selects events of a session by seq. The zero Span is all of them,
// oldest first.
type Span struct {
	// From and To are inclusive bounds; 0 leaves a side open.
	From, To int64
	// Backward yields newest first.
	Backward bool
	// Limit bounds the number of events; 0 is no bound. A store reads only the
	// events it yields, and at most one page more.
	Limit int
	// Transient allows the store to reuse the bytes of an event once the caller asks
	// for the next one. A store may ignore it.
	Transient bool
	// Snapshots allows the store to leave out all events but the snapshots and the
	// head_moved events. A store may ignore it. The span has no Limit.
	Snapshots bool
}

// SessionInfo is a session in a listing.
type SessionInfo struct {
	ID string
	// First and Last are the session's own first and last events.
	First, Last event.Event
	// Known is the head of a session whose last event a catalog knew: Last has its seq and time
	// only, and First no line. It is zero if both events were read.
	Known event.Head
	// Bytes is the size of the session's lines.
	Bytes int64
	// Err is set if the session cannot be read. Then First, Last and Bytes may be
	// empty.
	Err error
	// Tail is set if a finished write after Last is damaged, so that readers do not see its
	// events. The session up to Last is readable.
	Tail error
}

// Head is the head of the session.
func (i SessionInfo) Head() event.Head { return cmp.Or(i.Known, i.Last.Head()) }

// Events is the number of the session's own events.
func (i SessionInfo) Events() int64 {
	if i.Last.Seq == 0 {
		return 0
	}
	return i.Last.Seq - i.First.Seq + 1
}
