package eventlog

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/convlog/convlog/event"
)

// The optional abilities of a store, one interface a topic. As finds them. A
// store without an ability works; a feature that needs it returns ErrUnsupported.
type (
	// Blobs stores bodies by content. Equal bytes are stored once.
	Blobs interface {
		// PutBlob stores everything r yields and returns its digest and size.
		// It is durable when PutBlob returns. A blob that exists counts as
		// just written: its age for garbage collection starts anew.
		PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error)
		// OpenBlob opens a blob; ErrBlobNotFound if there is none. The reader
		// does not check the digest; Log.OpenBlob does.
		OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error)
		// RemoveBlobs removes blobs, durably and with few disk operations. A
		// blob that is missing is no error.
		RemoveBlobs(ctx context.Context, digests []event.Digest) error
		// ListBlobs yields all blobs ordered by digest.
		ListBlobs(ctx context.Context) iter.Seq2[BlobInfo, error]
	}

	// Locker is the store lock, across processes. Writers of a blob and of the
	// event that needs it hold it shared; garbage collection, redaction and
	// removal hold it exclusively.
	Locker interface {
		// Lock waits until ctx ends. held is derived from ctx and ends when the
		// lock is lost, as the lock of a server can be: the holder works under
		// held. Call unlock exactly once.
		Lock(ctx context.Context, exclusive bool) (held context.Context, unlock func(), err error)
	}

	// Eraser removes stored bytes for good: they cannot be recovered from the
	// store's own files.
	Eraser interface {
		// Rewrite replaces lines of a session and appends others, as one durable
		// operation under the same expectation as Append.
		Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error
		// RemoveSession removes a session whose head is expect. Blobs stay. The
		// zero Head removes a session so damaged that the store cannot tell its
		// head, and is a conflict for any other. A store that cannot compare
		// heads because of damage returns a *CorruptError.
		RemoveSession(ctx context.Context, session string, expect event.Head) error
	}

	// TailKeeper belongs to stores in which an unfinished write may leave bytes
	// after a session's last complete append.
	TailKeeper interface {
		// TornTails lists torn tails, of one session or, for "", of all, also of
		// sessions without any complete append. An error with a TornTail that
		// names a session concerns that session alone; iteration may continue.
		TornTails(ctx context.Context, session string) iter.Seq2[TornTail, error]
		// CutTail truncates a session's torn tail now, as its next append would:
		// it saves the bytes, and the next event names the cut. It returns the
		// removed tail, with zero Bytes if there was none, and the path the bytes
		// were saved to. Damage is a *CorruptError, and nothing is cut; a session
		// without any bytes is ErrNotFound.
		CutTail(ctx context.Context, session string) (cut TornTail, saved string, err error)
		// ForgetCut settles a cut that the next event at head expect would have
		// to name, and keeps the saved bytes: adopted lines are fixed and cannot
		// name it.
		ForgetCut(ctx context.Context, session string, expect event.Head) error
	}

	// Salvager reads past damage and replaces damaged sessions.
	Salvager interface {
		// Fragments yields all bytes that the storage of a session holds, in
		// order: each readable line, and the unreadable bytes between them, up to
		// the end, whether or not appends are complete. Lines are checked against
		// their crc only: they may repeat, be out of order or belong to another
		// session. A missing session is ErrNotFound. An error means that the
		// storage cannot be read at all, as of a failing disk; damage is no error.
		Fragments(ctx context.Context, session string) iter.Seq2[Fragment, error]
		// Replace puts events in place of all lines of a session, in one durable
		// operation, if its Version is still at. The old bytes are copied first,
		// to the returned path. A session that changed is a *ConflictError, and
		// nothing is replaced. Replace is called under the exclusive store lock,
		// and reads events before it excludes writers of the session: the events
		// may be read from the session itself.
		Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error)
	}

	// Sweeper finds bytes in a store that belong to no session and no blob. Its
	// methods are called under the store lock, exclusive if anything is removed.
	Sweeper interface {
		// Sweep yields the leftovers of interrupted writes, and removes each
		// before it is yielded if remove is true. Leftovers do not include bytes
		// that a running write needs, saved torn tails and backup copies. With
		// remove it also finishes interrupted erasures: afterwards no file of the
		// store holds erased bytes.
		Sweep(ctx context.Context, remove bool) iter.Seq2[Leftover, error]
		// Mentioned yields the blobs that saved torn tails and backup copies
		// refer to, existing or not. A digest may repeat.
		Mentioned(ctx context.Context) iter.Seq2[event.Digest, error]
	}

	// Checker finds damage of a store outside its listed sessions, as in an
	// index. A Defect with the rule "unlisted" names a session that Sessions
	// does not list because it has nothing but a torn tail. An error means that
	// the store could not be checked.
	Checker interface {
		Check(ctx context.Context) iter.Seq2[Defect, error]
	}

	// Syncer makes the readable events of a session durable, whoever wrote them
	// and under whatever policy. A killed process may have left events that can
	// be read and are not on disk yet: a retry that finds them must not report
	// them as stored before they are. A missing session is ErrNotFound.
	Syncer interface {
		Sync(ctx context.Context, session string) error
	}

	// Versioner tells cheaply whether a session may have changed: equal versions
	// mean that it has not. Watch polls it for appends of other processes. A
	// missing session is ErrNotFound.
	Versioner interface {
		Version(ctx context.Context, session string) (uint64, error)
	}

	// Searcher keeps an index of the text of events.
	Searcher interface {
		// Search yields every event that may match, of the events stored when it
		// began: each event whose folded text (event.TextReader, event.Fold) has
		// all of the folded terms in it, and each whose text is unknown. session
		// restricts the search to that session's own events up to seq to; "" and
		// 0 do not. Sessions come ordered by ByActivity. Each session's events may
		// be read after the iteration has moved on, and by another goroutine.
		Search(ctx context.Context, terms []string, session string, to int64) iter.Seq2[Candidates, error]
		// Index brings the index up to date, or rebuilds it. The store does so by
		// itself in time; until then searches are right, and slower.
		Index(ctx context.Context, rebuild bool) error
	}
)

// As finds an ability of a store. It looks through wrappers that have a method
// Unwrap() Store.
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

// BlobInfo describes a stored blob.
type BlobInfo struct {
	Digest  event.Digest
	Bytes   int64
	Written time.Time
}

// Leftover is a file or row that an interrupted write left.
type Leftover struct {
	Path  string
	Bytes int64
}

// TornTail is the bytes after the last complete append of a session. No reader
// sees them; the next append saves and truncates them.
type TornTail struct {
	Session       string
	Path          string
	Offset, Bytes int64
	// Whole says that the tail ends like a finished write: it is, or holds,
	// events that may have been acknowledged.
	Whole bool
}

// Fragment is a piece of a session's storage: an event, or bytes that are no event.
type Fragment struct {
	// Event is the line that was read; its Seq is 0 if there is none.
	Event event.Event
	// Path, Offset and Bytes locate the piece, newline included. Offset is -1 if
	// the store has no such place.
	Path          string
	Offset, Bytes int64
	// Err says why the bytes are no event. Each bad line is a piece of its own.
	Err error
	// Seq is the seq that the storage has for the piece besides the line itself,
	// as in a column, also if the line is missing; 0 if it has none.
	Seq int64
	// Unended says that the last line has no newline: the write that left it did
	// not finish.
	Unended bool
}

// Defect locates damage.
type Defect struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq,omitzero"`
	// Path and Offset locate the line, if the store has such a place; else Offset
	// is -1.
	Path   string `json:"path,omitzero"`
	Offset int64  `json:"offset"`
	// Rule is a short name: see package upkeep/verify for the rules.
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
	return fmt.Sprintf("%s: %s: %s", where, d.Rule, d.Detail)
}

// Candidates are events of one session that a search must examine.
type Candidates struct {
	Session string
	// Events come newest first. They are the session's own, and may be read at
	// most once.
	Events iter.Seq2[event.Event, error]
}

// Activity is the time of a session's newest event, to the microsecond.
type Activity struct {
	Session string
	Last    time.Time
}

// ByActivity orders sessions by the time of their newest event, the latest first,
// then by id.
func ByActivity(a, b Activity) int {
	if c := b.Last.Compare(a.Last); c != 0 {
		return c
	}
	if a.Session < b.Session {
		return -1
	}
	return 1
}
