package projection

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

var (
	// ErrSnapshotNotFound means that the session has no such snapshot. Snapshots lists
	// them.
	ErrSnapshotNotFound = errors.New("snapshot not found")
	// ErrUnknownProjection means that no projection has the name. Names lists them.
	ErrUnknownProjection = errors.New("unknown projection")
	// errInvalidSet means that a set has no parts, a part of it is unusable, a name
	// is missing or not allowed, or two parts have one name.
	errInvalidSet = errors.New("invalid projection set")
	// errInvalidState means that the Encode of a projection returned invalid JSON.
	errInvalidState = errors.New("invalid state")
	// errNotNext means that an event does not follow the event before it.
	errNotNext = errors.New("event is not the next event")
)

// FoldError is the event that a projection could not fold. Let its Apply skip the event.
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
