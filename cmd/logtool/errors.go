package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// usageError is a wrong command line: exit code 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// copyError is a failure to copy stored events into another store.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

// streamError is a failure to import an export of logtool.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

// interrupted is the exit code of a command that a signal ended.
const interrupted = 130

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.Is(err, context.Canceled):
		return interrupted
	default:
		return 1
	}
}

// explain is the line that logtool prints for err: the failure, and a hint. It is
// empty without an error, and if the reader of the output has closed it.
func explain(err error) string {
	switch {
	case err == nil, term.PipeClosed(err):
		return ""
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if hint := hintFor(err); hint != "" {
		text += "; " + hint
	}
	return clean(text)
}

// hintFor says how to continue after an error; it is empty for unknown errors.
func hintFor(err error) string {
	var conflict *eventlog.ConflictError
	var copying copyError
	var stream streamError
	var repair repairError
	if errors.As(err, &repair) {
		return repair.hint()
	}
	if errors.As(err, &stream) {
		if hint := streamHint(err); hint != "" {
			return hint
		}
	}
	switch {
	case errors.As(err, &conflict) && errors.As(err, &copying):
		return "this store has another history of the session: copy it to another store"
	case errors.As(err, &conflict) && conflict.ID == "" && conflict.Actual.IsZero():
		return "the session does not exist (any more): append with --expect new to begin it"
	case errors.As(err, &conflict) && conflict.ID == "":
		return fmt.Sprintf("read the new events (logtool tail %s), then append with --expect %s", shellWord(conflict.Session), expectation(conflict.Actual))
	}
	var beginning *beginningError
	var format *interop.FormatError
	var ambiguous *eventlog.AmbiguousError
	var secret *secrets.FoundError
	switch {
	case errors.As(err, &beginning):
		return beginning.hint()
	case errors.As(err, &format) && format.Database:
		return "if it is a log, copy it with logtool store convert"
	case format != nil:
		return "logtool import --help names the formats"
	case errors.As(err, &secret):
		return "take the secret out, or give --secrets mask to store [secret:RULE] in its place"
	case errors.As(err, &ambiguous):
		return "give more of the id"
	}
	if held := (*erase.HeldError)(nil); errors.As(err, &held) {
		return fmt.Sprintf("nothing was erased; once it may be: logtool store release %s", shellWord(held.Session))
	}
	if other := (*event.VersionError)(nil); errors.As(err, &other) && other.Got < other.Max {
		return "" // the error says what to do with an older store
	}
	hint := hintIn(hints, err)
	corrupt := (*eventlog.CorruptError)(nil)
	if errors.As(err, &copying) && isTargetDamage(err) && errors.As(err, &corrupt) && corrupt.Session != "" {
		return targetHint(shellWord(corrupt.Session))
	}
	if hint == damageHint && !errors.As(err, &corrupt) {
		return "give --store a sqlite file that logtool made; if it is one and its first page is lost: logtool store repair --into NEW"
	}
	return hint
}

const damageHint = "logtool verify shows all damage; restore the session from a copy, or salvage the readable events with logtool store repair"

const finishHint = "end the process that holds the old bytes, or use the owner of the tables in --store; then run logtool store gc: it completes the erasure"

const openHint = "logtool agent runs lists what is open"

// errorHint is a hint for all errors that match err.
type errorHint struct {
	err  error
	hint string
}

// hintIn is the hint of the first match for err; else empty.
func hintIn(hints []errorHint, err error) string {
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}

var hints = []errorHint{
	{erase.ErrUnfinished, finishHint},
	{runlog.ErrRunCycle, "logtool runlog --tree --alone and logtool export without --below read one session"},
	{engine.ErrCycle, "restore one of the sessions from a copy"},
	{fork.Error("past_head"), "logtool tail shows the newest events"},
	{fork.Error("no_turn"), "logtool runlog lists the turns"},
	{fork.Error("no_snapshot"), "logtool state list --orphaned lists them"},
	{projection.ErrSnapshotNotFound, "logtool state list --orphaned lists them"},
	{fork.Error("inside_append"), "name the last event of that append, or the one before it"},
	{fork.Error("open_turn"), "name an event between two turns, or give --force"},
	{fork.Error("no_move"), "nothing was changed"},
	{fork.Error("nothing_orphaned"), "nothing was changed; logtool recover --to SEQ goes to any event"},
	{fork.Error("unrelated"), "logtool tree shows the parents and children of each session"},
	{engine.ErrLineage, "repair or remove those first, or give --force"},
	{eventlog.ErrInUse, "remove the forks first, or copy them (logtool copy) and remove the originals"},
	{eventlog.ErrExists, "name another id"},
	{eventlog.ErrUnavailable, "check that the server runs, and the host and the port of --store; then run this again"},
	{postgres.ErrDenied, "check the user and the password of --store, or let the owner of the log grant the right"},
	{postgres.ErrNoLog, "name another schema with ?schema=NAME, or make a log there with logtool import"},
	{jetstream.ErrDenied, "check the user and the password of --store, or let the owner of the log grant the right"},
	{jetstream.ErrNotSynced, "say so with synced=true in the URL of the store"},
	{jetstream.ErrNoLog, "name another prefix with ?prefix=NAME, or make a log there with logtool import"},
	{eventlog.ErrLocked, "let the other process finish and run this again, or wait longer, as with --wait 10m"},
	{interop.ErrHistory, "import it into another store"},
	{interop.ErrErased, "nothing of the record was imported; import the file with --even-erased to store it"},
	{interop.ErrUnread, "nothing of the record was imported; a newer logtool may know this version of the format"},
	{flow.ErrAnswered, openHint},
	{flow.ErrNotOpen, openHint},
	{flow.ErrExpired, "the agent asks again or ends the wait when it continues"},
	{flow.ErrMismatch, "the review has changed: run this again"},
	{flow.ErrAlreadyRunning, "let the runner finish, or stop it, and run this again"},
	{flow.ErrToken, "copy the whole token; it begins with convlog:snapshot: or convlog:wait:"},
	{eventlog.ErrNotFound, "logtool ls lists the sessions"},
	{eventlog.ErrCorrupt, damageHint},
	{event.ErrVersion, "use a newer logtool"},
	{syscall.EMFILE, "raise the limit of open files (ulimit -n), and run this again"},
	{fs.ErrPermission, "look at its owner and permissions (ls -l), or run this as a user who may open it"},
	{eventlog.ErrUnknownOutcome, "look at the end of the session (logtool tail) before you append again"},
}

// streamHint is the hint for a stream that is damaged, or does not fit the store.
func streamHint(err error) string {
	var tree *transfer.TreeError
	switch {
	case !errors.As(err, &tree), errors.Is(err, runlog.ErrRunCycle):
		return hintIn(streamHints, err)
	case tree.Cut:
		return "the sessions before it are imported; import the whole stream again"
	}
	return "export the tree again"
}

// streamHints are for streams that are damaged, or do not fit the store.
var streamHints = []errorHint{
	{runlog.ErrRunCycle, "export the sessions without --below, and import that"},
	{eventlog.ErrConflict, "this store has another history of the session: import it into another store"},
	{event.ErrVersion, ""},
	{event.ErrForeign, "export the sessions again, or delete that line"},
	{event.ErrInvalid, "export the sessions again, or delete that line"},
	{eventlog.ErrNotFound, "export the fork again with its parents, or import the parents first"},
	{eventlog.ErrEventNotFound, "export the fork again with its parents, or import the parents first"},
	{eventlog.ErrCorrupt, "export the sessions again, from a log that logtool verify finds whole"},
}

// expectation is head in the form that --expect takes.
func expectation(head event.Head) string {
	if head.IsZero() {
		return "new"
	}
	return fmt.Sprintf("%d:%s", head.Seq, head.Hash)
}
