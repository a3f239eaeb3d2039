package fork

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

// Errors of this package. Each means that nothing was written. A missing session is
// eventlog.ErrNotFound, a taken session id eventlog.ErrExists, damage a
// *eventlog.CorruptError.
var (
	// ErrPastHead means that the session has fewer events. It comes with
	// eventlog.ErrEventNotFound.
	ErrPastHead = errors.New("past the head")
	// ErrNoTurn means that the active path has no turn of that index.
	ErrNoTurn = errors.New("no such turn")
	// ErrNoSnapshot means that no snapshot of the session has that id.
	ErrNoSnapshot = errors.New("no such snapshot")
	// ErrInsideAppend means that the point is between two events of one append.
	ErrInsideAppend = fmt.Errorf("inside an atomic append: %w", event.ErrInvalidTree)
	// ErrOpenTurn means that a turn is open at the point, or that a tool call has no
	// result there.
	ErrOpenTurn = errors.New("inside an open turn")
	// ErrNoMove means that the move would change nothing.
	ErrNoMove = errors.New("the head is there already")
	// ErrNothingOrphaned means that no branch is left to recover.
	ErrNothingOrphaned = errors.New("nothing is orphaned")
	// ErrUnrelated means that the sessions descend from no common session, or that
	// one is not the child of the other.
	ErrUnrelated = errors.New("sessions are not related")
)
