package eventlog

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
)

// The optional abilities of a store, one interface per topic. As finds them; a wrapper of
// a store has a method Unwrap() Store. A feature that needs a missing ability returns
// ErrUnsupported, unless the comment of the ability says what happens without it.
type (
	// Blobs stores bodies by their digest. Equal bodies are stored once.
	Blobs interface {
		// PutBlob stores all bytes of r and returns their digest and number. The blob
		// is durable when PutBlob returns. If the blob exists, its age for garbage
		// collection restarts.
		PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error)
		// OpenBlob opens a blob; ErrBlobNotFound if there is none. The reader
		// does not check the digest; Log.OpenBlob does.
		OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error)
		// RemoveBlobs removes blobs, durably and with few disk operations. It ignores
		// missing blobs.
		RemoveBlobs(ctx context.Context, digests []event.Digest) error
		// ListBlobs yields all blobs ordered by digest.
		ListBlobs(ctx context.Context) iter.Seq2[BlobInfo, error]
	}

	// BlobIndex finds the events that need a blob without reading sessions. Without it,
	// every event is read.
	BlobIndex interface {
		// BlobUsers yields the events that list one of the blobs (event.Event.Blobs), once
		// for each of its blobs. It yields an event even if its line is damaged now. If the
		// store lacks the index, the error is ErrUnsupported.
		BlobUsers(ctx context.Context, digests []event.Digest) iter.Seq2[BlobUser, error]
	}

	// Lister lists a part of the sessions without reading the others, up to a page. Without
	// it, the whole listing is read.
	Lister interface {
		// List yields the sessions of a part as Sessions does, ordered by id.
		List(ctx context.Context, part Part) iter.Seq2[SessionInfo, error]
	}

	// Relater finds the forks, copies and runs of a session by an index. Without it, the
	// whole listing is read.
	Relater interface {
		// Related yields the rows of the sessions that are related to the session by their
		// first event, or may be: their first event tells nothing. The rows are ordered by
		// id. The session may be missing, and may be among them. The first event of a row may be
		// damaged now. If the store lacks the index, Related yields all sessions.
		Related(ctx context.Context, session string) iter.Seq2[SessionInfo, error]
	}

	// Locker is the store lock, across processes. A writer of a blob holds it shared
	// until the event that needs the blob is written. Garbage collection, redaction
	// and removal hold it exclusively.
	Locker interface {
		// Lock waits for the lock, at most until ctx ends. The caller works under the
		// context locked, a child of ctx that ends if the lock is lost (a server may
		// lose one), and calls unlock exactly once.
		Lock(ctx context.Context, exclusive bool) (locked context.Context, unlock func(), err error)
	}

	// Eraser removes stored bytes for good: nobody can recover them from the store's
	// own files. The caller holds the exclusive store lock.
	Eraser interface {
		// Rewrite replaces lines of a session and appends the events of add, as one
		// durable operation with the expectation of Append.
		Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error
		// RemoveSession removes the session if its head is expect. Blobs stay. The
		// zero Head removes a session whose head is unreadable, and is a conflict for
		// any other session. If damage prevents the comparison, RemoveSession returns
		// a *CorruptError.
		RemoveSession(ctx context.Context, session string, expect event.Head) error
		// SetErasing records, durably, the blobs that an erasure is about to remove, so
		// that it can be finished if it is interrupted. No digests end the record.
		SetErasing(ctx context.Context, digests []event.Digest) error
		// Erasing returns the work of a running or interrupted erasure.
		Erasing(ctx context.Context) (Erasing, error)
	}

	// Retainer belongs to stores on servers, which keep erased bytes where an Eraser
	// cannot reach them, for example in a write-ahead log. Without it, a redaction reports
	// no such places.
	Retainer interface {
		// Retained returns the places that keep erased bytes, and how to remove them there.
		Retained(ctx context.Context) ([]Retained, error)
	}

	// TailKeeper belongs to stores in which an unfinished write may leave a torn tail:
	// bytes after the last complete append of a session.
	TailKeeper interface {
		// TornTails yields the torn tail of one session, or of all sessions if session
		// is "". It includes sessions without a complete append. An error with a
		// TornTail that names a session concerns that session alone; the caller may
		// continue.
		TornTails(ctx context.Context, session string) iter.Seq2[TornTail, error]
		// CutTail truncates a session's torn tail now, as the next append would. It
		// saves the bytes, and the next event names the cut. It returns the removed
		// tail, with zero Bytes if there was no tail, and the path of the saved bytes.
		// If the session is damaged, CutTail cuts nothing and returns a *CorruptError.
		// A session without bytes is ErrNotFound.
		CutTail(ctx context.Context, session string) (cut TornTail, saved string, err error)
		// ForgetCut makes the store accept an append at head expect that does not name
		// the cut, and keeps the saved bytes. Adopted lines are fixed: they cannot name
		// a cut.
		ForgetCut(ctx context.Context, session string, expect event.Head) error
	}

	// Salvager reads past damage and replaces damaged sessions.
	Salvager interface {
		// Fragments yields all bytes in the storage of a session, in order: each
		// readable line, and the unreadable bytes between them. It includes incomplete
		// appends. It checks the crc of a line only: lines may repeat, be out of order
		// or belong to another session. A missing session is ErrNotFound. Damage is no
		// error; an error means that the storage cannot be read, for example because
		// the disk fails. The bytes of an event are valid only until the caller asks
		// for the next fragment, or stops.
		Fragments(ctx context.Context, session string) iter.Seq2[Fragment, error]
		// Replace replaces all lines of a session by events, in one durable operation,
		// if the Version of the session is still at. It copies the old bytes to the
		// path copied first. If the session has changed, Replace replaces nothing and
		// returns a *ConflictError. The caller holds the exclusive store lock. Replace
		// reads events before it locks the session, so events may read the session.
		Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error)
	}

	// Sweeper finds bytes in a store that belong to no session and no blob. The caller
	// holds the store lock, exclusively if it removes anything.
	Sweeper interface {
		// Sweep yields the leftovers of interrupted writes. Bytes of a running write,
		// saved torn tails and backup copies are no leftovers. If remove is true,
		// Sweep removes each leftover before it yields it, and finishes interrupted
		// erasures: afterwards no file of the store has erased bytes.
		Sweep(ctx context.Context, remove bool) iter.Seq2[FilePlace, error]
		// Mentioned yields the digests of the blobs that saved torn tails and backup
		// copies refer to. A digest may repeat, and its blob may be missing.
		Mentioned(ctx context.Context) iter.Seq2[event.Digest, error]
	}

	// ByteFinder finds byte strings in the files of the store, to prove that erased
	// content is gone.
	ByteFinder interface {
		// FindBytes yields each place in a file that has one of the needles.
		FindBytes(ctx context.Context, needles [][]byte) iter.Seq2[FilePlace, error]
	}

	// Checker finds damage outside the listed sessions, for example in an index. A
	// Defect with the rule "unlisted" names a session with a torn tail only, which
	// Sessions does not list. A Defect with the rule "watermark" is no damage: it says how old
	// the knowledge of the store about its own end is. An error means that the check could not be made.
	Checker interface {
		Check(ctx context.Context) iter.Seq2[Defect, error]
	}

	// Syncer makes the readable events of a session durable, under any sync policy.
	// The events of a killed process may be readable and not on disk yet. A retry that
	// finds them syncs them before it reports them as stored. A missing session is
	// ErrNotFound.
	Syncer interface {
		Sync(ctx context.Context, session string) error
		// OrdersAppends reports whether a crash that leaves an append also leaves all earlier
		// appends, as a store with one write-ahead log for all sessions does. A fork then needs
		// no Sync of its parent.
		OrdersAppends() bool
	}

	// Versioner gives each state of a session a version, cheaply: if two versions are
	// equal, the session has not changed, also in another process. Watch polls it for
	// appends of other processes. A missing session is ErrNotFound.
	Versioner interface {
		Version(ctx context.Context, session string) (uint64, error)
	}

	// BulkVersioner is Versioner for many sessions at once, in a store that a network
	// separates from the log. If the store is a Notifier too, Watch waits for its
	// changes, and asks for versions only in case that one is missed. Without it, Watch asks
	// for one version at a time.
	BulkVersioner interface {
		// Versions returns the versions of the sessions that exist.
		Versions(ctx context.Context, sessions []string) (map[string]uint64, error)
	}

	// Cataloger keeps a row for each session: bytes that a program derives from the
	// events, so that it need not read them again (stats.Catalog). A row may be lost at
	// any time. Rewrite, RemoveSession and Replace erase the row of their session, in the
	// same durable operation. Without it, stats.Catalog reads each session each time.
	Cataloger interface {
		// CatalogRows returns the rows of the sessions that have one. A row may be damaged,
		// and older than the session's head. If the store lacks the catalog, the error is
		// ErrUnsupported.
		CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error)
		// PutCatalogRows replaces rows. It leaves out each row whose session has another
		// Version now, so that erased content cannot come back. The caller holds the store
		// lock, shared or exclusively.
		PutCatalogRows(ctx context.Context, rows []CatalogRow) error
	}

	// Limiter bounds the appends of a store. A store without it takes appends of 4 MiB.
	Limiter interface {
		// MaxAppend returns the largest append that the store takes: the bytes of its
		// lines, including one newline each. The log spills data and forms batches by
		// the smaller of that and 4 MiB.
		MaxAppend(ctx context.Context) (int, error)
	}

	// Leaser gives leases. A lease says that its holder is alive. It ends when its
	// holder releases it, closes the store or dies, even if the process is killed. A
	// process that is stopped keeps its leases, on a server for a limited time.
	Leaser interface {
		// Lease takes the lease of a name. It does not wait: if another holder has the
		// lease, in this process or another, it returns ErrLeased. On a server it may wait a
		// second for the end of a lease whose holder is gone; Leased too. A name has 1 to 512
		// bytes. A lease is independent of a session whose id equals its name.
		Lease(ctx context.Context, name string) (Lease, error)
		// Leased reports whether the lease of a name is held.
		Leased(ctx context.Context, name string) (bool, error)
	}

	// Lease is a lease that this process holds. All methods may be called concurrently.
	Lease interface {
		// Lost is closed when the lease has ended: it was released, the store was
		// closed, or the store lost it (a server may end one).
		Lost() <-chan struct{}
		// Release ends the lease. To release an ended lease is no error.
		Release() error
	}

	// Identifier gives a store an id, by which a copy of the store can be told from it.
	// Without it, package flow continues open turns in every copy.
	Identifier interface {
		// StoreID returns the id of the store, which no other store has. The first call makes
		// the id, durably; in a store that may only read it returns "" and makes none. The id
		// stays. A raw copy of the files or tables of the store has the same id.
		StoreID(ctx context.Context) (string, error)
	}

	// Notifier reports the sessions that any process changes.
	Notifier interface {
		// Changes yields the id of each session that is created, appended to, rewritten
		// or removed. "" means that any session may have changed.
		//
		// The first element is "". Every later change is yielded, so a caller that lists
		// the sessions at each "" misses nothing. When a change is yielded, reads see it.
		// Several changes of a session may be yielded once, and a
		// session may be yielded that has not changed or does not exist. The store does
		// not wait for a slow caller.
		//
		// The sequence ends with ctx's error, with ErrClosed, or with an error of the
		// storage.
		Changes(ctx context.Context) iter.Seq2[string, error]
	}

	// LineReader leaves out events by the bytes of their lines, which takes less time than
	// to parse every line. Without it, a search without an index parses every line.
	LineReader interface {
		// ReadLines is Store.Read without the events for whose line, as it is stored, wanted
		// is false. It may yield such events too. It compares the crc of every line. The
		// span has no Limit.
		ReadLines(ctx context.Context, session string, r Span, wanted func(line []byte) bool) iter.Seq2[event.Event, error]
	}

	// Searcher keeps an index of the text of events.
	Searcher interface {
		// Search yields every event that may match, of the events stored when Search
		// began. An event may match if its folded text (searchtext.Reader, searchtext.Fold)
		// contains all folded terms, or if its text is unknown. If session is not "",
		// Search yields only its own events up to seq to; 0 is no bound. Sessions come
		// in the order of their newest event, to the microsecond, the latest first, then by id. A session may come in several parts, the newest
		// first. The caller may read the events of a part later, and in another goroutine.
		Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[Candidates, error]
		// Index updates the index, or rebuilds it if rebuild is true. The store also
		// updates it by itself; searches before the update are correct and slower.
		Index(ctx context.Context, rebuild bool) error
	}
)

// CatalogRow is a row for a Cataloger to keep.
type CatalogRow struct {
	Session string
	// At is the Version of the session before the events were read.
	At uint64
	// Data has no format for the store.
	Data []byte
}

// BlobInfo describes a stored blob.
type BlobInfo struct {
	Digest  event.Digest
	Bytes   int64
	Written time.Time
}

// Retained is a place outside a store's own files or tables that keeps erased bytes.
type Retained struct {
	Where  string // a phrase, for example "the write-ahead log of the server"
	Remedy string // how an administrator removes the bytes, as an imperative
}

// FilePlace is a place in a file of a store, or in a table.
type FilePlace struct {
	Path   string
	Offset int64
	Bytes  int64 // of a leftover
}

// Erasing is the work of a running or interrupted erasure.
type Erasing struct {
	// Blobs are the blobs to remove, if no event needs them.
	Blobs []event.Digest
	// Bytes says that the store's files may have bytes of replaced lines. Sweeper.Sweep
	// erases them.
	Bytes bool
}

// Done reports whether nothing is to be done.
func (e Erasing) Done() bool { return len(e.Blobs) == 0 && !e.Bytes }

func (e Erasing) String() string {
	var left []string
	if n := len(e.Blobs); n > 0 {
		left = append(left, fmt.Sprintf("%d blobs may have to be removed", n))
	}
	if e.Bytes {
		left = append(left, "the files may have erased bytes")
	}
	return "an erasure is not finished: " + strings.Join(left, ", and ")
}

// TornTail locates the bytes after the last complete append of a session. Readers
// ignore them; the next append saves and truncates them.
type TornTail struct {
	Session       string
	Path          string
	Offset, Bytes int64
	// Whole is true if the tail ends like a finished write: it may contain events that
	// were acknowledged.
	Whole bool
}

// Fragment is a piece of a session's storage: an event, or unreadable bytes.
type Fragment struct {
	// Event is the event of a readable line. Its Seq is 0 if the bytes are unreadable.
	Event event.Event
	// Path, Offset and Bytes locate the piece, newline included. Offset is -1 if the
	// store has no byte offsets.
	Path          string
	Offset, Bytes int64
	// Err is the reason why the bytes are unreadable. Each bad line is a fragment.
	Err error
	// Seq is the seq of the piece in the storage outside the line, for example in a
	// column. It may be set if the line is missing. 0 means that there is none.
	Seq int64
	// Unended is true for a last line without a newline: its write did not finish.
	Unended bool
}

// Defect locates damage.
type Defect struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq,omitzero"`
	// Path and Offset locate the line. Offset is -1 if the store has no byte offsets.
	Path   string `json:"path,omitzero"`
	Offset int64  `json:"offset"`
	// Rule is the short name of the broken rule; see package upkeep/verify.
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

func (d Defect) String() string {
	where := d.Path
	if where != "" && d.Offset >= 0 {
		where += fmt.Sprintf(" byte %d", d.Offset)
	}
	if d.Session != "" {
		who := fmt.Sprintf("session %q", d.Session)
		if d.Seq > 0 {
			who += fmt.Sprintf(" event %d", d.Seq)
		}
		if where != "" {
			who += " (" + where + ")"
		}
		where = who
	}
	if where == "" {
		where = "store"
	}
	return fmt.Sprintf("%s: %s: %s", where, d.Rule, d.Detail)
}

// Candidates are events of one session, or of a part of it, that a search must examine.
type Candidates struct {
	Session string
	// Events are own events of the session, newest first. Iterate at most once.
	Events iter.Seq2[event.Event, error]
}
