package records

import (
	"fmt"

	"github.com/convlog/convlog/interop"
)

// RecordError locates a rejected record. The import counts it and continues.
type RecordError struct {
	Source string
	Line   int64 // physical line, from 1
	Offset int64 // byte offset in the file
	Cause  error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: %v", e.Source, e.Line, e.Offset, e.Cause)
}

// Unwrap gives the cause.
func (e *RecordError) Unwrap() error { return e.Cause }

// HistoryError reports that the log's session has another history than the file: the
// record is not in the session and does not continue it. The import added neither
// this record nor a later record of the file to the session. It matches interop.ErrHistory.
type HistoryError struct {
	Session string
	Source  string
	Line    int64
	Offset  int64
	Reason  string
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: session %q: %v: %s",
		e.Source, e.Line, e.Offset, e.Session, interop.ErrHistory, e.Reason)
}

// Is matches interop.ErrHistory.
func (e *HistoryError) Is(target error) bool { return target == interop.ErrHistory }

// UnreadError reports that a format is not understood: no part of the messages of a role, or
// a call or its result. The import added neither this record nor a later record of the file
// to the session. It matches interop.ErrUnread.
type UnreadError struct {
	Session string
	Source  string
	Line    int64
	Offset  int64
	Reason  string
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: session %q: %v: %s",
		e.Source, e.Line, e.Offset, e.Session, interop.ErrUnread, e.Reason)
}

// ErasedError reports that a new record may be an erased event of the log. The import stored
// neither this record nor a later record of the file in the session. It matches
// interop.ErrErased.
type ErasedError struct {
	Session string
	// Event is the erased event, in the session In.
	In     string
	Event  int64
	Source string
	Line   int64
	Offset int64
}

func (e *ErasedError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: session %q: %v: event %d of session %q",
		e.Source, e.Line, e.Offset, e.Session, interop.ErrErased, e.Event, e.In)
}

// Is matches interop.ErrErased.
func (e *ErasedError) Is(target error) bool { return target == interop.ErrErased }

// Is matches interop.ErrUnread.
func (e *UnreadError) Is(target error) bool { return target == interop.ErrUnread }
