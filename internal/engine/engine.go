// Package engine gives the packages that maintain a log some parts of the log that
// other callers must not use: exclusive access to a session, the store lock, and
// operations on stored lines. A user's callback that held one of the locks could
// deadlock.
//
// Package eventlog sets Of. Packages upkeep, search and projection call it.
package engine

import (
	"context"
	"io"
	"time"

	"github.com/convlog/convlog/event"
)

// Of returns the engine of an *eventlog.Log, which may be nil.
var Of func(log any) Engine

// Bounds of appends and of adoptions.
const (
	// MaxAppend bounds the bytes of the lines of one append, so that a reader finds
	// a torn tail within that many bytes.
	MaxAppend = 4 << 20
	// MinSpill is the least data that is worth a blob, in bytes.
	MinSpill = 256
)

// Engine is the part of a Log that other rooms need.
type Engine interface {
	// MaxAppend bounds the bytes of the lines of one append to the log's store. It is at
	// most the constant MaxAppend.
	MaxAppend(ctx context.Context) (int, error)

	// Usable returns ErrClosed for a closed or nil log, event.ErrNilArgument for a nil
	// ctx, the error of an ended ctx, and event.ErrInvalidSession for a malformed id.
	Usable(ctx context.Context, session string) error

	// Ready is Usable for a call without a session.
	Ready(ctx context.Context) error

	// Locked runs fn under the store lock. The context of fn ends if the lock is lost;
	// then the error is eventlog.ErrLockLost. Methods of the log that get the context of
	// fn do not take the lock again.
	Locked(ctx context.Context, exclusive bool, fn func(ctx context.Context) error) error

	// Append is Log.Append at an expected head, durable under any sync policy if durable
	// is true. It returns the stored events, with data and upcast.
	Append(ctx context.Context, session string, after event.Head, durable bool, events ...event.Event) (stored []event.Event, err error)

	// AppendEach is a lenient Log.AppendEach at an expected head. fresh is false if the
	// events were stored already, for example by an import of the same file in another
	// process.
	AppendEach(ctx context.Context, session string, after event.Head, appends ...[]event.Event) (head event.Head, fresh bool, err error)

	// Exclusively runs fn while this process appends nothing to the session. The log
	// forgets its memory of the session, and watchers read the store.
	Exclusively(ctx context.Context, session string, fn func(ctx context.Context) error) error

	// Rewrite appends note to a session and replaces lines of it, as one operation.
	// There may be no lines. A retry after an unknown outcome finds note by its id.
	Rewrite(ctx context.Context, session string, note event.Event, lines []event.Event) error

	// PutBlob is Log.PutBlob without Options.BodyHook, for bodies whose digest is fixed.
	PutBlob(ctx context.Context, r io.Reader) (event.BlobRef, error)

	// Spills reports whether the log spills the event's data to a blob.
	Spills(e *event.Event) bool

	// Fetch reads the data of a spilled event, without upcasts. If the event was
	// redacted after it was read, e becomes the redacted event.
	Fetch(ctx context.Context, e *event.Event) error

	// ErasedSince reports whether e was redacted after it was read, so that its blob is
	// missing. Then e becomes the redacted event.
	ErasedSince(ctx context.Context, e *event.Event) bool

	// CheckFork returns an error if the parent does not have the event that a fork
	// names.
	CheckFork(ctx context.Context, session string, f *event.Fork) error

	// Sync makes a session durable, if the store is a Syncer.
	Sync(ctx context.Context, session string) error

	// Mint returns an event with an id and a time from the log's clock.
	Mint(p event.Payload) event.Event

	// Now returns the time of the log's clock.
	Now() time.Time
}
