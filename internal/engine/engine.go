// Package engine gives the rooms that maintain a log the parts of its engine that
// users of a Log must not hold: exclusive access to a session, the store lock, and
// operations on finished lines. A callback of a user that held one of them could
// wait for itself.
//
// Package eventlog sets Of; upkeep calls it.
package engine

import (
	"context"
	"time"

	"github.com/convlog/convlog/event"
)

// Of is the engine of an *eventlog.Log.
var Of func(log any) Engine

// Bounds of appends and of adoptions.
const (
	// MaxAppend bounds the bytes of the lines of one append, so that a reader finds
	// a torn tail within that many bytes.
	MaxAppend = 4 << 20
	// MinSpill is the least data that is worth a blob, in bytes.
	MinSpill = 256
)

// Engine is the part of a Log that maintenance needs.
type Engine interface {
	// Usable is ErrClosed or ctx's error if the log cannot be used, and
	// event.ErrInvalidSession if session is no session id.
	Usable(ctx context.Context, session string) error

	// LockStore takes the store lock. held ends when the lock is lost; methods of
	// the log that are given held do not take the lock again.
	LockStore(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error)

	// Exclusively runs fn while this process appends nothing to the session. Then
	// the log forgets what it knew of the session, and watchers read the store.
	Exclusively(ctx context.Context, session string, fn func(ctx context.Context) error) error

	// Rewrite appends note to a session and replaces lines of it, as one operation.
	// lines is called for each try, and may be empty. A retry after an unknown
	// outcome recognises note by its id.
	Rewrite(ctx context.Context, session string, note event.Event, lines func(ctx context.Context) ([]event.Event, error)) error

	// Spills reports whether the log spills the event's data to a blob.
	Spills(e *event.Event) bool

	// Fetch reads the data of a spilled event, and does not upcast it. An event that
	// was redacted meanwhile becomes the redacted event.
	Fetch(ctx context.Context, e *event.Event) error

	// ErasedSince reports whether e was redacted after it was read, which a missing
	// blob may mean. Then e becomes the redacted event.
	ErasedSince(ctx context.Context, e *event.Event) bool

	// CheckFork says why the parent does not have the event that a fork names.
	CheckFork(ctx context.Context, session string, f *event.Fork) error

	// Sync makes a session durable, in stores where it may not be.
	Sync(ctx context.Context, session string) error

	// Mint makes an event with the log's clock and random bytes.
	Mint(p event.Payload) event.Event

	// Now is the log's clock.
	Now() time.Time
}
