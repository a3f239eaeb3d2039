package projection

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

var (
	// ErrSnapshotNotFound means that the session has no such snapshot.
	ErrSnapshotNotFound = errors.New("snapshot not found")
	// ErrUnknownProjection means that no projection has the name.
	ErrUnknownProjection = errors.New("unknown projection")
	// ErrInvalidSet means that a set has no parts, a part of it is unusable, a name
	// is missing or not allowed, or two parts have one name.
	ErrInvalidSet = errors.New("invalid projection set")
	// ErrInvalidState means that the Encode of a projection returned invalid JSON.
	ErrInvalidState = errors.New("invalid state")
	// ErrNotNext means that an event does not follow the event before it.
	ErrNotNext = errors.New("event is not the next event")
)

// Reasons to skip a snapshot. SkippedSnapshot.Err matches one of them.
var (
	// ErrRedactedBody means that the body was redacted.
	ErrRedactedBody = errors.New("snapshot is redacted")
	// ErrOtherVersion means that the body was made by another version of the
	// projection.
	ErrOtherVersion = errors.New("snapshot has another version")
	// ErrBadDigest means that the body does not match its digest.
	ErrBadDigest = errors.New("snapshot does not match its digest")
	// ErrUnreadableBody means that the body is missing or cannot be decoded.
	ErrUnreadableBody = errors.New("snapshot cannot be read")
	// ErrCopiedBody means that the snapshot was copied with its session: its states
	// may contain ids and costs of the original session.
	ErrCopiedBody = errors.New("snapshot was copied from another session")
	// ErrOffPath means that the last event that the snapshot covers is not on the
	// path of the snapshot.
	ErrOffPath = errors.New("snapshot covers another path")
	// ErrOtherEvents means that the events before the snapshot are not the events
	// that it was made from, for example after a repair that lost some; or the
	// snapshot has no hash of them.
	ErrOtherEvents = errors.New("snapshot covers other events")
)

// FoldError is the event that a projection could not fold.
type FoldError struct {
	Projection string
	Session    string
	Seq        int64
	Type       event.Type
	Err        error
}

func (e *FoldError) Error() string {
	return fmt.Sprintf("project %s: %s %d of session %q: %v", e.Projection, e.Type, e.Seq, e.Session, e.Err)
}

func (e *FoldError) Unwrap() error { return e.Err }
