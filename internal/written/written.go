// Package written names the files for other programs that logtool resume wrote. The
// session_forked event of the session that such a file begins has the file in its metadata.
package written

import (
	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// Key is the name of the File in the metadata of a session_forked event.
const Key = "written"

// File is a file that the session of the event begins.
type File struct {
	// Format is the name of the format of the program.
	Format string `json:"format"`
	// Path is where the file was written; empty if the program reads it by a command.
	Path string `json:"path,omitzero"`
	// Bytes is the size of the file, and Digest its digest. Header is how many of the bytes
	// an import reads each time, because later records depend on them.
	Bytes  int64        `json:"bytes"`
	Header int64        `json:"header,omitzero"`
	Digest event.Digest `json:"digest"`
	// Seqs are the seqs of the events that the records of the file have, in the order of the
	// records' ids. So an import knows which event a record follows when the program goes back
	// to the middle of the file.
	Seqs []int64 `json:"seqs,omitzero"`
}

// Of returns the file that a session begins; ok is false if it begins none. first is the
// first event of the session.
func Of(first *event.Event) (f File, ok bool) {
	if first.Type.Name() != event.SessionForked || len(first.Metadata) == 0 {
		return f, false
	}
	var m struct {
		Written *File `json:"written"`
	}
	if err := json.Unmarshal(first.Metadata, &m); err != nil || m.Written == nil {
		return f, false
	}
	return *m.Written, true
}
