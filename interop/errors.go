package interop

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownFormat: a named file is no transcript of a known format.
	ErrUnknownFormat = errors.New("not a transcript of a known format")
	// ErrHistory: the log holds another history under the same session id.
	ErrHistory = errors.New("another history under the same session id")
	// ErrRecord: a record cannot be parsed.
	ErrRecord = errors.New("unreadable record")
)

// FormatError reports a named file that is no transcript. It matches
// ErrUnknownFormat.
type FormatError struct {
	Path string
	// Reason describes the file's content; it may be empty.
	Reason string
}

func (e *FormatError) Error() string {
	text := fmt.Sprintf("%s: %v", e.Path, ErrUnknownFormat)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Is matches ErrUnknownFormat.
func (e *FormatError) Is(target error) bool { return target == ErrUnknownFormat }

// RecordError locates a rejected record. It matches ErrRecord.
type RecordError struct {
	Source string
	Line   int64 // physical line, from 1
	Offset int64 // byte offset in the file
	Cause  error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: %v", e.Source, e.Line, e.Offset, e.Cause)
}

// Is matches ErrRecord.
func (e *RecordError) Is(target error) bool { return target == ErrRecord }

// Unwrap gives the cause.
func (e *RecordError) Unwrap() error { return e.Cause }

// HistoryError reports that the log's session has another history than the file: the
// record is not in the session and does not continue it. The import added neither
// this record nor a later record of the file to the session. It matches ErrHistory.
type HistoryError struct {
	Session string
	Source  string
	Line    int64
	Offset  int64
	Reason  string
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("%s:%d: record at byte %d: session %q: %v: %s",
		e.Source, e.Line, e.Offset, e.Session, ErrHistory, e.Reason)
}

// Is matches ErrHistory.
func (e *HistoryError) Is(target error) bool { return target == ErrHistory }
