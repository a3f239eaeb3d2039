package fork

import (
	"fmt"

	"github.com/convlog/convlog/event"
)

// Error is the reason why a call was refused. Nothing was written. Test it with
// errors.Is(err, fork.Error("no_move")).
//
//   - past_head: the session has fewer events. The error is also
//     eventlog.ErrEventNotFound.
//   - no_turn: the active path has no turn of that index. List the turns with logtool
//     runlog.
//   - no_snapshot: no snapshot of the session has that id. List them with logtool state
//     list.
//   - inside_append: the point is between two events of one append. Choose the event
//     before or after it. The error is also event.ErrInvalidTree.
//   - open_turn: a turn is open at the point, or a tool call has no result there. Choose
//     the end of a turn, or set Options.Force.
//   - no_move: the move would change nothing.
//   - nothing_orphaned: no branch is left to recover. Rewind with Options.Force takes
//     any event.
//   - unrelated: the sessions descend from no common session, or one is not the child of
//     the other. A copy is unrelated to its original.
//
// A missing session is eventlog.ErrNotFound, a taken session id eventlog.ErrExists,
// damage a *eventlog.CorruptError.
type Error string

const (
	errPastHead        Error = "past_head"
	errNoTurn          Error = "no_turn"
	errNoSnapshot      Error = "no_snapshot"
	errInsideAppend    Error = "inside_append"
	errOpenTurn        Error = "open_turn"
	errNoMove          Error = "no_move"
	errNothingOrphaned Error = "nothing_orphaned"
	errUnrelated       Error = "unrelated"
)

var reasons = map[Error]string{
	errPastHead:        "past the head",
	errNoTurn:          "no such turn",
	errNoSnapshot:      "no such snapshot",
	errInsideAppend:    fmt.Sprintf("inside an atomic append: %v", event.ErrInvalidTree),
	errOpenTurn:        "inside an open turn",
	errNoMove:          "the head is there already",
	errNothingOrphaned: "nothing is orphaned",
	errUnrelated:       "sessions are not related",
}

func (e Error) Error() string { return reasons[e] }

// Is reports whether a target is the general error of e.
func (e Error) Is(target error) bool { return e == errInsideAppend && target == event.ErrInvalidTree }
