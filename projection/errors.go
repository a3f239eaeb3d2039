package projection

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

var (
	// ErrSnapshotNotFound: the session has no such snapshot.
	ErrSnapshotNotFound = errors.New("snapshot not found")
	// ErrUnknownProjection: no projection of that name.
	ErrUnknownProjection = errors.New("unknown projection")
	// ErrInvalidSet: a set without name or parts, or with two parts of one name.
	ErrInvalidSet = errors.New("invalid set of projections")
	// ErrInvalidState: a projection's Encode made something that is not JSON.
	ErrInvalidState = errors.New("invalid state")
	// ErrNotNext: an event was given that does not follow the one before it.
	ErrNotNext = errors.New("event is not the next one")
)

// Why a snapshot was passed over; matched by PassedOver.Err.
var (
	// ErrRedactedBody: its body was redacted.
	ErrRedactedBody = errors.New("snapshot is redacted")
	// ErrOtherVersion: its body is of another version of the projection.
	ErrOtherVersion = errors.New("snapshot is of another version")
	// ErrBadDigest: its body is not what its digest says.
	ErrBadDigest = errors.New("snapshot fails its digest")
	// ErrUnreadableBody: its body is missing or cannot be decoded.
	ErrUnreadableBody = errors.New("snapshot cannot be read")
	// ErrCopiedBody: it was copied with its session. Its states may hold ids and
	// costs of the original.
	ErrCopiedBody = errors.New("snapshot was copied from another session")
	// ErrOffPath: what it covers does not lie on the path it stands on.
	ErrOffPath = errors.New("snapshot covers another path")
	// ErrOtherPast: it was taken of other events than stand before it now, as after
	// a repair that lost some; or it does not say of which.
	ErrOtherPast = errors.New("snapshot is of another past")
)

// FoldError says which event a projection could not fold.
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
