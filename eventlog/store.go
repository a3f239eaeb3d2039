package eventlog

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store is what a backend implements: the smallest thing under a Log. Users
// hold a Log; a store is to it what a driver is to database/sql.
//
// A store keeps finished lines verbatim and decides one thing only: whether a
// session's head is the expected one. It assigns nothing and validates nothing
// beyond that. All methods may be called concurrently. The promises below are
// tested one by one in package storetest.
type Store interface {
	// Append writes the events' lines after expect, all or none, in order.
	//
	// It compares expect with the session's head under the lock that excludes
	// every other writer, in this process and others; the zero Head means the
	// session must not exist. A mismatch is a *ConflictError with the actual
	// head, and nothing is written. A store that has removed a torn tail
	// answers with a ConflictError whose Cut is set until an append's first
	// event names that cut.
	//
	// When Append returns nil the lines are readable, and durable as the
	// store's sync policy says, or in any case if durable is true. An error that
	// leaves the outcome open is an *UnknownOutcomeError; any other error means
	// that nothing was written. The context is honoured while waiting; once
	// the write has begun, leaving gives an UnknownOutcomeError.
	//
	// The store does not keep or change the events after it returns.
	Append(ctx context.Context, session string, expect Head, events []Event, durable bool) error

	// Read yields the session's own events of r in r's direction, consistent
	// with the head at its start, each checked against its crc. A missing
	// session is ErrNotFound; damage is a *CorruptError that names the place;
	// after an error the sequence ends. Only complete appends are seen.
	// Events may be kept: their bytes are not reused.
	Read(ctx context.Context, session string, r Span) iter.Seq2[Event, error]

	// Sessions yields every session of the store, ordered by id.
	Sessions(ctx context.Context) iter.Seq2[SessionInfo, error]

	// Close releases everything. Later calls answer ErrClosed. Appends that
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
	First, Last Event
	// Bytes is the size of the session's lines.
	Bytes int64
	// Err is set, and the rest may be empty, where the session cannot be read;
	// the listing goes on.
	Err error
}

// Events is how many events the session itself holds.
func (i SessionInfo) Events() int64 {
	if i.Last.Seq == 0 {
		return 0
	}
	return i.Last.Seq - i.First.Seq + 1
}

// The optional abilities of a store, found with As.
type (
	// Blobs keeps bodies by content. Equal bytes are kept once.
	Blobs interface {
		// PutBlob stores everything r yields and returns its digest and size;
		// it is durable when PutBlob returns. A blob that exists counts as
		// just written (its age for gc starts anew).
		PutBlob(ctx context.Context, r io.Reader) (Digest, int64, error)
		// OpenBlob opens a blob; ErrBlobNotFound if there is none. The reader
		// does not check the digest; Log.OpenBlob does.
		OpenBlob(ctx context.Context, d Digest) (io.ReadCloser, error)
		// RemoveBlob removes a blob; no error if there is none.
		RemoveBlob(ctx context.Context, d Digest) error
		// ListBlobs yields all blobs ordered by digest.
		ListBlobs(ctx context.Context) iter.Seq2[BlobInfo, error]
	}

	// Locker is the store lock, across processes. Writing a blob and the event
	// that needs it happens under a shared lock; gc, redaction and removal take
	// it exclusively.
	Locker interface {
		// Lock waits until ctx ends. Call unlock exactly once.
		Lock(ctx context.Context, exclusive bool) (unlock func(), err error)
	}

	// Rewriter replaces lines of a session and appends others, as one
	// operation under the same expectation as Append. It is durable, and the
	// replaced bytes are not recoverable from the store's own files.
	Rewriter interface {
		Rewrite(ctx context.Context, session string, expect Head, replace, add []Event) error
	}

	// Remover removes a session whose head is expect. Blobs stay, for gc. The zero
	// Head removes a session that is so damaged that the store cannot tell its
	// head, and is a conflict for any other. A store that cannot compare because
	// of damage answers with a *CorruptError.
	Remover interface {
		RemoveSession(ctx context.Context, session string, expect Head) error
	}

	// TailLister is of stores that an unfinished write may leave with bytes
	// behind a session's last complete append. It lists them, of one session or,
	// for "", of all, also of sessions without any complete append. An error
	// names a session that could not be looked at, if it is only that one, and
	// a caller that goes on gets the others.
	TailLister interface {
		TornTails(ctx context.Context, session string) iter.Seq2[TornTail, error]
	}

	// CutForgetter is of stores that cut torn tails. ForgetCut settles the cut
	// that is owed at head expect without an event that names it, and keeps
	// the bytes: the lines of an adoption are fixed and cannot name it.
	CutForgetter interface {
		ForgetCut(ctx context.Context, session string, expect Head) error
	}

	// TailCutter cuts a session's torn tail off now, as its next append would:
	// it saves the bytes, and the next event names the cut. It returns what was
	// cut and the path it was saved to; zero Bytes if there was nothing to cut.
	// Damage is a *CorruptError, and nothing is cut. A session without anything is
	// ErrNotFound.
	TailCutter interface {
		CutTail(ctx context.Context, session string) (cut TornTail, saved string, err error)
	}

	// Salvager reads on behind damage. Fragments yields, in order of place, all
	// that the storage of a session holds: each line that can be read, and the
	// bytes between them that cannot, up to the end, whether or not appends are
	// complete. Lines are checked against their crc and by nothing else: they
	// may repeat, be out of order or be of another session. A missing session
	// is ErrNotFound. An error is what kept the store from reading at all, such
	// as a failing disk; damage is none.
	Salvager interface {
		Fragments(ctx context.Context, session string) iter.Seq2[Fragment, error]
	}

	// Replacer puts other lines in the place of all that a session holds, in one
	// durable operation, if its Version is still at. What it held is kept
	// first, byte for byte, under the path that is returned. A session that
	// changed is a *ConflictError, and nothing is replaced. Replace is called
	// under the exclusive store lock, and reads events before it keeps
	// writers out: they may come from the session itself.
	Replacer interface {
		Replace(ctx context.Context, session string, at uint64, events iter.Seq2[Event, error]) (kept string, err error)
	}

	// Sweeper is of stores that keep more than sessions and blobs: what writers
	// left that were killed. Its methods are called under the store lock,
	// exclusive if anything is to be removed.
	Sweeper interface {
		// Sweep yields what writes that did not end have left, and removes each
		// before it is yielded if remove is true. What a write still under way
		// needs is none of it, nor are saved torn tails and kept copies. With
		// remove it also finishes erasures that were interrupted: afterwards no
		// file of the store holds bytes that were erased.
		Sweep(ctx context.Context, remove bool) iter.Seq2[Leftover, error]
		// RemoveBlobs removes blobs, for the cost of few durable operations; those
		// that are not there are passed over.
		RemoveBlobs(ctx context.Context, digests []Digest) error
		// Mentioned yields the blobs that saved torn tails and kept copies name,
		// whatever their state. A digest may come often.
		Mentioned(ctx context.Context) iter.Seq2[Digest, error]
	}

	// Checker finds what is wrong with a store and with none of its listed
	// sessions, such as a damaged index. A Defect of the rule unlisted names a
	// session that Sessions does not list, since it has nothing but a torn tail;
	// verifying it tells more. An error is what kept the store from looking.
	Checker interface {
		Check(ctx context.Context) iter.Seq2[Defect, error]
	}

	// Syncer makes durable what can be read of a session, whoever wrote it and
	// under whatever policy. A process that was killed may have left events that
	// are there and not on disk: a retry that finds them must not be told that
	// they are safe before they are. A missing session is ErrNotFound.
	Syncer interface {
		Sync(ctx context.Context, session string) error
	}

	// Versioner answers cheaply whether a session may have changed: equal
	// answers mean that it has not. It is what Watch polls for appends of
	// other processes. A missing session is ErrNotFound.
	Versioner interface {
		Version(ctx context.Context, session string) (uint64, error)
	}
)

// BlobInfo describes a stored blob.
type BlobInfo struct {
	Digest  Digest
	Bytes   int64
	Written time.Time
}

// Leftover is what a write left that did not end.
type Leftover struct {
	Path  string
	Bytes int64
}

// TornTail is what stands behind the last complete append of a session. No
// reader shows it; the next append saves it and cuts it off.
type TornTail struct {
	Session string
	// Path, Offset and Bytes say where it is.
	Path          string
	Offset, Bytes int64
	// Whole says that it ends like a finished write: rather than the remains of
	// an unfinished one it is, or holds, events that were acknowledged.
	Whole bool
}

// Fragment is a piece of a session's storage: an event, or bytes that are none.
type Fragment struct {
	// Event is the line that was read; its Seq is 0 where there is none.
	Event Event
	// Path, Offset and Bytes say where the piece is, newline included. Offset is
	// -1 where the store has no such place.
	Path          string
	Offset, Bytes int64
	// Err says why the bytes are no event. Each line that is none is a piece of
	// its own.
	Err error
	// Seq is the seq that the storage has for the piece beside the line itself,
	// as in a column, also where the row is missing; 0 where it has none.
	Seq int64
	// Unended says that the last bytes lack the end of a line: the write that
	// left them did not finish.
	Unended bool
}

// As finds an ability of a store, looking through wrappers that have an
// Unwrap() Store method.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if ability, ok := s.(T); ok {
			return ability, true
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = wrapper.Unwrap()
	}
	var none T
	return none, false
}
