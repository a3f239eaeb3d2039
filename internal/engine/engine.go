// Package engine gives the packages that maintain a log some parts of the log that
// other callers must not use: exclusive access to a session, the store lock, and
// operations on stored lines. A user's callback that held one of the locks could
// deadlock.
//
// Package eventlog sets Of. The packages in upkeep and search call it.
package engine

import (
	"context"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
)

// Of returns the engine of an *eventlog.Log.
var Of func(log any) Engine

// Engine is the part of a Log that other rooms need.
type Engine interface {
	// Usable returns ErrClosed if the log is closed, ctx's error if ctx has ended, and
	// event.ErrInvalidSession if session is not a valid id.
	Usable(ctx context.Context, session string) error

	// LockStore takes the store lock. held ends if the lock is lost. Methods of the log
	// that receive held do not take the lock again.
	LockStore(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error)

	// Append is Log.Append at an expected head. It returns the events as they are
	// stored, with data and upcast.
	Append(ctx context.Context, session string, after event.Head, events []event.Event) (stored []event.Event, err error)

	// Exclusively runs fn while this process appends nothing to the session. Afterwards
	// the log drops its cache of the session, and watchers read the store again.
	Exclusively(ctx context.Context, session string, fn func(ctx context.Context) error) error

	// Rewrite appends note to a session and replaces lines of the session, as one
	// operation. Each attempt calls lines, which may return nothing. A retry after an
	// unknown outcome finds note by its id.
	Rewrite(ctx context.Context, session string, note event.Event, lines func(ctx context.Context) ([]event.Event, error)) error

	// Adopt works like Log.Adopt, but its errors do not name the session. If salvaged is
	// true, blobs may be missing and a fork's parent may be damaged.
	Adopt(ctx context.Context, session string, events iter.Seq2[event.Event, error], salvaged bool) (read, stored int64, head event.Head, err error)

	// CheckSalvaged returns the error with which Adopt would reject salvaged events. It
	// stores nothing.
	CheckSalvaged(ctx context.Context, session string, events iter.Seq2[event.Event, error]) error

	// Fetch reads the data of a spilled event without upcasting it. If the event was
	// redacted in the meantime, e becomes the redacted event.
	Fetch(ctx context.Context, e *event.Event) error

	// ErasedSince reports whether e was redacted after the caller read it; a missing
	// blob may have this reason. If so, e becomes the redacted event.
	ErasedSince(ctx context.Context, e *event.Event) bool

	// CheckFork returns an error if the parent does not have the event that the fork
	// names.
	CheckFork(ctx context.Context, session string, f *event.Fork) error

	// Sync makes a session durable if the store may have unsynced events.
	Sync(ctx context.Context, session string) error

	// Mint returns an event with an id and a time from the log's clock.
	Mint(p event.Payload) event.Event

	// Now returns the time of the log's clock.
	Now() time.Time
}
