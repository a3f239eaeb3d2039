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
	"iter"
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

// StoreSession is the session of a store with its notes: removed, retired, held, released.
const StoreSession = "convlog:store"

// The types of the notes, events of event.StoreNote.
const (
	Removed  event.Type = "removed"
	Retired  event.Type = "retired"
	Erased   event.Type = "erased"
	Held     event.Type = "held"
	Released event.Type = "released"
)

// IsNote reports whether events of a type are notes of a store.
func IsNote(t event.Type) bool {
	switch t.Name() {
	case Removed, Retired, Erased, Held, Released:
		return true
	}
	return false
}

// IsIndexed reports whether a store may have an index of the events of a type, for
// eventlog.Span.Snapshots.
func IsIndexed(t event.Type) bool {
	name := t.Name()
	return name == event.ProjectionSnapshotted || name == event.HeadMoved
}

// Engine is the part of a Log that other rooms need.
type Engine interface {
	// Settings returns the settings of the log. It may ask the server of the store.
	Settings(ctx context.Context) (Settings, error)

	// Usable returns ErrClosed for a closed or nil log, event.ErrNilArgument for a nil
	// ctx, the error of an ended ctx, and event.ErrInvalidSession for a malformed id.
	Usable(ctx context.Context, sessions ...string) error

	// Locked runs fn under the store lock. The context of fn ends if the lock is lost;
	// then the error is eventlog.ErrLockLost. Methods of the log that get the context of
	// fn do not take the lock again.
	Locked(ctx context.Context, exclusive bool, fn func(ctx context.Context) error) error

	// Append is Log.Append at an expected head, durable under any sync policy if durable
	// is true. It does not wait for the disk if ctx comes from SetUnsynced. It returns the
	// stored events, with data and upcast.
	Append(ctx context.Context, session string, after event.Head, durable bool, events ...event.Event) (stored []event.Event, err error)

	// AppendEach is a lenient Log.AppendEach at an expected head. fresh is false if the
	// events were stored already, for example by an import of the same file in another
	// process.
	AppendEach(ctx context.Context, session string, after event.Head, appends ...[]event.Event) (head event.Head, fresh bool, err error)

	// Exclusively runs fn while this process appends nothing to the session. The log
	// forgets its memory of the session, and watchers read the store.
	Exclusively(ctx context.Context, session string, fn func(ctx context.Context) error) error

	// Rewrite appends an event of note to a session and replaces lines of it, as one
	// operation. There may be no lines. A retry after an unknown outcome finds the event by
	// its id.
	Rewrite(ctx context.Context, session string, note event.Payload, lines []event.Event) error

	// PutBlob is Log.PutBlob without Options.BodyHook, for bodies whose digest is fixed.
	PutBlob(ctx context.Context, r io.Reader) (event.BlobRef, error)

	// Fetch reads the data of a spilled event, without upcasts. If the event was
	// redacted after it was read, e becomes the redacted event.
	Fetch(ctx context.Context, e *event.Event) error

	// Snapshots yields the snapshots and the head_moved events of a session and of its
	// ancestors up to the fork points, newest first, with data and upcast. If the store has an
	// index of them, it reads no other events.
	Snapshots(ctx context.Context, session string) iter.Seq2[event.Event, error]

	// CheckFork returns an error if the parent does not have the event that a fork
	// names.
	CheckFork(ctx context.Context, session string, f *event.Fork) error
}

// Settings are settings of a log.
type Settings struct {
	// MaxAppend bounds the bytes of the lines of one append to the log's store. It is at
	// most the constant MaxAppend.
	MaxAppend int
	// SpillOver is the largest data that the log does not spill to a blob. If it is negative,
	// the log spills only what an append does not take.
	SpillOver int
	// Now is the clock of the log.
	Now func() time.Time
}

// Spills reports whether the log spills the event's data to a blob.
func (s *Settings) Spills(e *event.Event) bool {
	return s.SpillOver >= 0 && len(e.Data) > s.SpillOver && e.Type.Spillable()
}
