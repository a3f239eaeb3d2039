package eventlog

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/regular"
)

// The errors of a Log; match them with errors.Is. The log stays usable after each of
// them. Errors about events are in package event: event.ErrInvalid and its rules,
// event.ErrVersion, event.ErrRedacted. A nil context, reader or function is an
// event.ErrNilArgument.
var (
	// ErrNotFound: the session does not exist. Check the id, or begin the session with
	// New.
	ErrNotFound = errors.New("session not found")
	// ErrExists: the session exists already. Continue it, or choose another id.
	ErrExists = errors.New("session exists")
	// ErrConflict: the session has another head than the append expects, or the id of an
	// appended event belongs to another event. Read the new events, decide, and append
	// at the new head. See ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrClosed: the log or its store is closed, or nil. Open it again.
	ErrClosed = errors.New("log is closed")
	// ErrReadOnly: the store was opened for reading only, or is read-only after damage.
	// Open it for writing, or run logtool verify.
	ErrReadOnly = errors.New("store is read-only")
	// ErrLocked: another process holds a lock, and the store waited as long as it may.
	// Repeat the call later.
	ErrLocked = errors.New("locked by another process")
	// ErrLeased: another holder has the lease. Ask again later with Leaser.Leased.
	ErrLeased = errors.New("leased by another holder")
	// ErrUnknownOutcome: the events may be stored or not. Append the same events
	// again. See UnknownOutcomeError.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrUnavailable: the server of the store cannot be reached, or refuses work for now.
	// Nothing was written. Try again later.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrLockLost: the store lock ended before its holder released it, for example
	// because the connection to a server broke. Another process may have the lock.
	// Repeat the operation.
	ErrLockLost = errors.New("store lock lost")
	// ErrCorrupt: stored bytes are damaged. Restore the session from a backup, or run
	// logtool store repair. See CorruptError.
	ErrCorrupt = errors.New("corrupt")
	// ErrNotRegular: a file of the store is a named pipe, a device, a folder or another
	// special file. Move it away: the error has its path.
	ErrNotRegular = regular.Err
	// ErrMoved: the folder or the database of an open store was moved, removed or
	// replaced. An append would be in files that nobody finds. Open the store again.
	ErrMoved = errors.New("the store was moved, removed or replaced while it was open")
	// ErrUnsupported: the store lacks an optional ability. Use a store that has it.
	ErrUnsupported = errors.New("not supported by this store")
	// ErrEventNotFound: no event has that seq or id. Check the head with Log.Head.
	ErrEventNotFound = errors.New("event not found")
	// ErrBlobNotFound: no blob has that digest. Put the blob again, or run logtool
	// verify.
	ErrBlobNotFound = errors.New("blob not found")
	// ErrInUse: a fork needs the session or the event, or may need it: a session that
	// may be a fork cannot be read. Remove or copy the forks first.
	ErrInUse = errors.New("session is in use")
	// ErrRefused: Options.Hook refused the event. It matches event.ErrInvalid. Correct
	// the event.
	ErrRefused = fmt.Errorf("%w: refused by hook", event.ErrInvalid)
)

// ConflictError reports the expected head of an append and the actual head. It matches
// ErrConflict. It also matches ErrExists if the append expected a new session.
type ConflictError struct {
	Session          string
	Expected, Actual event.Head
	// Cut is set by a store that truncated a torn tail: the next append must name
	// the cut. Log does so; its callers never see Cut.
	Cut *event.Cut
	// ID is set if the session has another event with the id of an appended event.
	ID string
}

func (e *ConflictError) Error() string {
	if e.ID != "" {
		return fmt.Sprintf("conflict in session %q: event %s exists with other content", e.Session, e.ID)
	}
	return fmt.Sprintf("conflict in session %q: expected head %v, found %v", e.Session, e.Expected, e.Actual)
}

// Is matches ErrConflict and ErrExists.
func (e *ConflictError) Is(target error) bool {
	return target == ErrConflict || target == ErrExists && e.ID == "" && e.Expected.IsZero() && !e.Actual.IsZero()
}

// UnknownOutcomeError names the head before a write that may be stored or not. Append
// the same events again, At that head or Any().After it: they are stored once. It matches
// ErrUnknownOutcome.
type UnknownOutcomeError struct {
	Session string
	Head    event.Head
	Cause   error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("append to session %q at %v: outcome unknown: %v", e.Session, e.Head, e.Cause)
}

// Is matches ErrUnknownOutcome.
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Unwrap is the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Cause }

// RolledBackError names a head that is lost: a server failed over to an older standby, or
// was restored from a backup. Every later call on the store returns this error. Restore
// the events, or open the store again to continue with the stored events.
type RolledBackError struct {
	Session string
	Head    event.Head
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("the store was rolled back: session %q: event %d with hash %v is not stored any more", e.Session, e.Head.Seq, e.Head.Hash)
}

// CorruptError locates damage. It matches ErrCorrupt.
type CorruptError struct {
	Session string
	Path    string // the file or table; "" if unknown
	Offset  int64  // the first byte of the bad line in Path; -1 if unknown
	Seq     int64  // the expected seq at the damage; 0 if unknown
	Cause   error
}

func (e *CorruptError) Error() string {
	where := e.Path
	if where == "" {
		where = fmt.Sprintf("session %q", e.Session)
	}
	if e.Offset >= 0 {
		where += fmt.Sprintf(" at byte %d", e.Offset)
	}
	if e.Seq > 0 {
		where += fmt.Sprintf(" (seq %d)", e.Seq)
	}
	return fmt.Sprintf("corrupt: %s: %v", where, e.Cause)
}

// Is matches ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap is the cause.
func (e *CorruptError) Unwrap() error { return e.Cause }

// damaged is the error of damage at an event, in an unknown place of the storage.
func damaged(session string, seq int64, cause error) error {
	return &CorruptError{Session: session, Offset: -1, Seq: seq, Cause: cause}
}
