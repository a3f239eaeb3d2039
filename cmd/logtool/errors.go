package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/convlog/convlog/eventlog"
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
	var repair repairFailure
	switch {
	case errors.As(err, &repair):
		return repair.hint()
	case errors.As(err, &conflict) && errors.As(err, &copying):
		return "this store has another history of the session: copy it to another store"
	case errors.As(err, &conflict) && conflict.ID == "" && conflict.Actual.IsZero():
		return "the session does not exist (any more): append with --expect new to begin it"
	case errors.As(err, &conflict) && conflict.ID == "":
		return fmt.Sprintf("read what was added (logtool tail %s), then append with --expect %s", shellWord(conflict.Session), expectation(conflict.Actual))
	case errors.Is(err, eventlog.ErrNotFound):
		return "logtool ls lists the sessions"
	case errors.As(err, &corrupt):
		return "logtool verify shows all damage; restore the session from a copy, or salvage what can be read with logtool repair"
	case errors.Is(err, eventlog.ErrCorrupt):
		return "give --store a sqlite file that logtool made, or restore the file from a copy"
	case errors.Is(err, eventlog.ErrVersion):
		return "use a newer logtool"
	case errors.Is(err, eventlog.ErrUnknownOutcome):
		return "look at the end of the session (logtool tail) before you append again"
	}
	return ""
}

// expectation is head as --expect takes it.
func expectation(head eventlog.Head) string {
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
