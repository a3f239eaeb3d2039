package eventlog

import (
	"context"
	"iter"

	"github.com/convlog/convlog/event"
)

// Store is what a backend implements: the smallest thing under a Log. Users hold a
// Log; a store is to it what a driver is to database/sql.
//
// A store keeps finished lines verbatim and decides one thing only: whether a
// session's head is the expected one. It assigns nothing and validates nothing
// beyond that. All methods may be called concurrently. Package store/storetest
// tests the promises below one by one.
type Store interface {
	// Append writes the events' lines after expect, all or none, in order.
	//
	// It compares expect with the session's head under the lock that excludes
	// every other writer, in this process and others; the zero Head means the
	// session must not exist. A mismatch is a *ConflictError with the actual
	// head, and nothing is written. A store that has removed a torn tail
	// returns a ConflictError whose Cut is set until an append's first event
	// names that cut.
	//
	// When Append returns nil the lines are readable, and durable as the
	// store's sync policy says, or in any case if durable is true. An error that
	// leaves the outcome open is an *UnknownOutcomeError; any other error means
	// that nothing was written. The context is honoured while waiting; once
	// the write has begun, leaving gives an UnknownOutcomeError.
	//
	// The store does not keep or change the events after it returns.
	Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error

	// Read yields the session's own events of r in r's direction, consistent
	// with the head at its start, each checked against its crc. A missing
	// session is ErrNotFound; damage is a *CorruptError that names the place;
	// after an error the sequence ends. Only complete appends are seen.
	// Events may be kept: their bytes are not reused.
	Read(ctx context.Context, session string, r Span) iter.Seq2[event.Event, error]

	// Sessions yields every session of the store, ordered by id.
	Sessions(ctx context.Context) iter.Seq2[SessionInfo, error]

	// Close releases everything. Later calls return ErrClosed. Appends that
	// were acknowledged under a relaxed sync policy are synced first.
	Close() error
}

// Span selects events of a session by seq. The zero Span is all of them,
// oldest first.
type Span struct {
	// From and To are inclusive bounds; 0 leaves a side open.
	From, To int64
	// Backward yields newest first.
	Backward bool
	// Limit bounds how many are yielded; 0 is no bound. Only what is yielded
	// is read, up to a store's page.
	Limit int
}

// SessionInfo is a row of a listing, from a session's first and last event.
type SessionInfo struct {
	ID string
	// First and Last are the session's own first and last events.
	First, Last event.Event
	// Bytes is the size of the session's lines.
	Bytes int64
	// Err is set, and the rest may be empty, if the session cannot be read. The
	// listing continues.
	Err error
}

// Events is how many events the session itself holds.
func (i SessionInfo) Events() int64 {
	if i.Last.Seq == 0 {
		return 0
	}
	return i.Last.Seq - i.First.Seq + 1
}
