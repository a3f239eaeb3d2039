package listing

import (
	"errors"
	"slices"
	"syscall"

	"github.com/convlog/convlog/eventlog"
)

// Unreadable is the defect of a session that cannot be read because of err.
func Unreadable(session string, err error) eventlog.Defect {
	d := eventlog.Defect{Session: session, Offset: -1, Rule: "unreadable", Detail: err.Error()}
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) {
		d.Path, d.Offset, d.Seq, d.Detail = corrupt.Path, corrupt.Offset, corrupt.Seq, corrupt.Cause.Error()
	}
	return d
}

// IsOutside reports whether err says nothing about a session: the process or the server lacks
// something for now.
func IsOutside(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, eventlog.ErrUnavailable, eventlog.ErrLocked, eventlog.ErrMoved, eventlog.ErrClosed},
		func(cause error) bool { return errors.Is(err, cause) })
}
