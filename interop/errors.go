package interop

import "errors"

// ErrHistory reports that the log's session has another history than the file. The import
// added no further record of the file to the session. Import the file into another log.
var ErrHistory = errors.New("another history under the same session id")

// ErrUnread reports that a file has messages, calls or results in a form that its format
// does not have. The import refuses the session: its history would lack them. Use a
// newer version of this module.
var ErrUnread = errors.New("not understood")

// ErrErased reports that a record may be one that was erased from the log: the file has
// changed around it, or is a copy. The import stored no further record of the file in the
// session. Repair the file, or set Options.EvenErased.
var ErrErased = errors.New("the record may be one that was erased from the log")

// FormatError reports that a named file is no transcript of a known format. Name the
// format, or leave the file out.
type FormatError struct {
	Path string
	// Reason describes the file's content; it may be empty.
	Reason string
	// Database says that the file is a SQLite database: it may be a log.
	Database bool
}

func (e *FormatError) Error() string {
	text := e.Path + ": not a transcript of a known format"
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}
