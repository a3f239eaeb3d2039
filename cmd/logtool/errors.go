package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
)

// usageError is a command line that makes no sense: exit code 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// copyError is what kept finished events from being copied into the store.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

// streamError is what kept a stream that export wrote from being imported.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

// hint is what to do where the stream is at fault; empty where it is not.
func (e streamError) hint() string {
	switch {
	case errors.Is(e, eventlog.ErrConflict):
		return "this store has another history of the session: import it into another store"
	case errors.Is(e, event.ErrVersion):
		return ""
	case errors.Is(e, event.ErrForeign), errors.Is(e, event.ErrInvalid):
		return "export the sessions again, or take that line out"
	case errors.Is(e, eventlog.ErrNotFound), errors.Is(e, eventlog.ErrEventNotFound):
		return "export the fork again, which brings what it rests on, or import that first"
	case errors.Is(e, eventlog.ErrCorrupt):
		return "export the sessions again, from a log that logtool verify finds whole"
	}
	return ""
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	default:
		return 1
	}
}

// explain is the one line that is printed for err: what went wrong and what to
// do next. It is empty when nothing is to be said: no error, or a reader of
// our output that went away.
func explain(err error) string {
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
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

// hintFor says what to do about an error that the log gave.
func hintFor(err error) string {
	var conflict *eventlog.ConflictError
	var corrupt *eventlog.CorruptError
	var copying copyError
	var stream streamError
	var repair repairFailure
	var beginning *beginningError
	var unlike *interop.FormatError
	var several *eventlog.AmbiguousError
	if errors.As(err, &repair) {
		return repair.hint()
	}
	if errors.As(err, &stream) && stream.hint() != "" {
		return stream.hint()
	}
	switch {
	case errors.As(err, &conflict) && errors.As(err, &copying):
		return "this store has another history of the session: copy it to another store"
	case errors.As(err, &conflict) && conflict.ID == "" && conflict.Actual.IsZero():
		return "the session does not exist (any more): append with --expect new to begin it"
	case errors.As(err, &conflict) && conflict.ID == "":
		return fmt.Sprintf("read what was added (logtool tail %s), then append with --expect %s", shellWord(conflict.Session), expectation(conflict.Actual))
	}
	if hint := hintForTree(err); hint != "" {
		return hint
	}
	switch {
	case errors.Is(err, eventlog.ErrLocked):
		return "let the other process finish and run this again, or wait longer, as with --wait 10m"
	case errors.Is(err, interop.ErrHistory):
		return "import it into another store"
	case errors.As(err, &unlike) && unlike.Reason == interop.IsSQLite:
		return "if it is a log, copy it with logtool convert"
	case errors.Is(err, interop.ErrUnknownFormat):
		return "logtool import --help names the formats"
	case errors.As(err, &several):
		return "give more of the id"
	case errors.Is(err, eventlog.ErrNotFound):
		return "logtool ls lists the sessions"
	case errors.As(err, &beginning):
		return beginning.hint()
	case errors.As(err, &corrupt):
		return "logtool verify shows all damage; restore the session from a copy, or salvage what can be read with logtool repair"
	case errors.Is(err, eventlog.ErrCorrupt):
		return "give --store a sqlite file that logtool made, or restore the file from a copy"
	case errors.Is(err, event.ErrVersion):
		return "use a newer logtool"
	case errors.Is(err, fs.ErrPermission):
		return "look at its owner and permissions (ls -l), or run this as a user who may open it"
	case errors.Is(err, eventlog.ErrUnknownOutcome):
		return "look at the end of the session (logtool tail) before you append again"
	}
	return ""
}

// hintForTree says what to do about a fork, a rewind or a removal that was
// refused, or a view that is not there.
func hintForTree(err error) string {
	for _, h := range treeHints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}

var treeHints = []struct {
	err  error
	hint string
}{
	{eventlog.ErrCycle, "restore one of the sessions from a copy"},
	{fork.ErrPastHead, "logtool tail shows the newest events"},
	{fork.ErrNoTurn, "logtool runlog lists the turns"},
	{fork.ErrNoSnapshot, "logtool snapshots --orphaned lists them"},
	{projection.ErrSnapshotNotFound, "logtool snapshots --orphaned lists them"},
	{fork.ErrInsideAppend, "name the last event of that append, or the one before it"},
	{fork.ErrOpenTurn, "name an event between two turns, or give --force"},
	{fork.ErrNoMove, "nothing was changed"},
	{fork.ErrNothingOrphaned, "nothing was changed; logtool recover --to SEQ goes to any event"},
	{fork.ErrUnrelated, "logtool tree shows who descends from whom"},
	{eventlog.ErrInUse, "remove the forks first, or copy them (logtool copy) and remove those they were made of"},
	{eventlog.ErrLineage, "repair or remove those first, or give --force"},
	{eventlog.ErrExists, "name another id"},
}

// expectation is head as --expect takes it.
func expectation(head event.Head) string {
	if head.IsZero() {
		return "new"
	}
	return fmt.Sprintf("%d:%s", head.Seq, head.Hash)
}

// shellWord quotes a word for a shell where that is needed.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || r == '/' || r == ':' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
