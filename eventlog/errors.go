package eventlog

import (
	"errors"
	"fmt"
)

// Errors of the contract. After each of these the log stays usable.
var (
	// ErrNotFound: the session does not exist.
	ErrNotFound = errors.New("session not found")
	// ErrExists: the session exists already.
	ErrExists = errors.New("session exists")
	// ErrConflict: the session's head is not the expected one, or an event id
	// is taken by other content. See ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrClosed: the log or its store was closed.
	ErrClosed = errors.New("log is closed")
	// ErrReadOnly: the store was opened for reading only, or has been set
	// read-only after damage.
	ErrReadOnly = errors.New("store is read-only")
	// ErrLocked: another process has held a lock of the store for longer than the
	// store was told to wait.
	ErrLocked = errors.New("locked by another process")
	// ErrUnknownOutcome: the write may or may not stand; append the same events
	// again. See UnknownOutcomeError.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrCorrupt: damaged bytes. See CorruptError.
	ErrCorrupt = errors.New("corrupt")
	// ErrVersion: written by a newer version. See VersionError.
	ErrVersion = errors.New("unsupported version")
	// ErrUnsupported: the store lacks the ability that was asked for.
	ErrUnsupported = errors.New("not supported by this store")
	// ErrEventNotFound: no event with that seq or id.
	ErrEventNotFound = errors.New("event not found")
	// ErrBlobNotFound: no blob with that digest.
	ErrBlobNotFound = errors.New("blob not found")
	// ErrInUse: the session is needed by forks of it.
	ErrInUse = errors.New("session is in use")
	// ErrLineage: the parent of a session that may be a fork cannot be read.
	ErrLineage = errors.New("lineage cannot be read")
	// ErrRedacted: the payload asked for has been redacted.
	ErrRedacted = errors.New("event is redacted")
	// ErrForeign: a JSON line that no log wrote (it has neither crc nor hash).
	ErrForeign = errors.New("not a line of a log")
)

// ErrInvalid is matched by every error of validation; each rule has a
// sentinel of its own. Nothing was written.
var ErrInvalid = errors.New("invalid event")

// The rules of validation, one sentinel each.
var (
	ErrInvalidSession   = rule("session id")
	ErrInvalidID        = rule("event id")
	ErrInvalidType      = rule("event type")
	ErrInvalidTimestamp = rule("timestamp")
	ErrInvalidCost      = rule("cost")
	ErrInvalidMetadata  = rule("metadata")
	ErrInvalidData      = rule("data")
	ErrInvalidPayload   = rule("payload")
	ErrInvalidRole      = rule("role")
	ErrInvalidMessage   = rule("message")
	ErrInvalidCall      = rule("tool call")
	ErrInvalidResult    = rule("tool result")
	ErrInvalidTree      = rule("tree event")
	ErrInvalidBlob      = rule("blob")
	ErrInvalidSize      = rule("size")
	// ErrRefused: a hook refused the event.
	ErrRefused = rule("refused by hook")
)

type ruleError struct{ rule string }

func rule(name string) error              { return &ruleError{name} }
func (e *ruleError) Error() string        { return "invalid " + e.rule }
func (e *ruleError) Is(target error) bool { return target == ErrInvalid }

// ConflictError says what an append expected and what it found. It matches
// ErrConflict.
type ConflictError struct {
	Session          string
	Expected, Actual Head
	// Cut is set by a store that removed a torn tail: the next append must
	// name it. Log handles it; users do not see it.
	Cut *Cut
	// ID is set when an event id is taken by other content.
	ID string
}

func (e *ConflictError) Error() string {
	if e.ID != "" {
		return fmt.Sprintf("conflict in session %q: event %s exists with other content", e.Session, e.ID)
	}
	return fmt.Sprintf("conflict in session %q: expected head %v, found %v", e.Session, e.Expected, e.Actual)
}

// Is matches ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// UnknownOutcomeError names the head before a write whose outcome is unknown.
// Append the same events again, At that head or AnyAfter it: they are stored
// once. It matches ErrUnknownOutcome.
type UnknownOutcomeError struct {
	Session string
	Head    Head
	Cause   error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("append to session %q at %v: outcome unknown: %v", e.Session, e.Head, e.Cause)
}

// Is matches ErrUnknownOutcome.
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Unwrap gives the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Cause }

// CorruptError locates damage. Path names the file or table, Offset is the
// byte offset of the bad line (-1 where there is none), Seq the seq that was
// due there (0 if unknown). It matches ErrCorrupt.
type CorruptError struct {
	Session string
	Path    string
	Offset  int64
	Seq     int64
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

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Cause }

// VersionError says which version was met and which is the highest this
// program reads. It matches ErrVersion.
type VersionError struct {
	// What has the version: "envelope", "sqlite schema", or an event type.
	What     string
	Got, Max int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s version %d is newer than %d, the highest this program reads", e.What, e.Got, e.Max)
}

// Is matches ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }
