package fork

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

// Why a fork, a rewind or a query is refused. When one of these is returned
// nothing was written. A session that is missing is eventlog.ErrNotFound, one
// that is in the way eventlog.ErrExists, damage a *eventlog.CorruptError.
var (
	// ErrPastHead: the session is shorter. It comes with
	// eventlog.ErrEventNotFound.
	ErrPastHead = errors.New("past the head")
	// ErrNoTurn: the active path has no such turn.
	ErrNoTurn = errors.New("no such turn")
	// ErrNoSnapshot: no snapshot of the session has that id.
	ErrNoSnapshot = errors.New("no such snapshot")
	// ErrInsideAppend: the point lies between events that were appended as one.
	ErrInsideAppend = fmt.Errorf("inside an atomic append: %w", event.ErrInvalidTree)
	// ErrOpenTurn: a turn is under way at the point, or a tool call is pending.
	ErrOpenTurn = errors.New("inside an open turn")
	// ErrNoMove: the head is there already.
	ErrNoMove = errors.New("the head is there already")
	// ErrNothingOrphaned: there is nothing to recover.
	ErrNothingOrphaned = errors.New("nothing is orphaned")
	// ErrUnrelated: the sessions have nothing to do with each other.
	ErrUnrelated = errors.New("sessions are not related")
	// ErrCycle: a session is its own ancestor. It comes inside a
	// *eventlog.CorruptError.
	ErrCycle = errors.New("a session is its own ancestor")
)
