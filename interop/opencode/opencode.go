// Package opencode imports the sessions of OpenCode.
//
// # Files
//
// The package reads three layouts of the same content:
//
//	opencode.db                                  the database of all sessions
//	<any>.json                                   a document from "opencode export"
//	storage/session/<project>/<session>.json     the storage of older versions, a file for each
//	storage/message/<session>/<message>.json     session, message and part
//	storage/part/<message>/<part>.json
//
//	{"info": {session}, "messages": [{"info": {message}, "parts": [{part}, …]}, …]}
//
// The import of any file of the storage imports its whole session. The database is opened
// for reading only, also while OpenCode runs and a part of it is in its write-ahead log.
// Each session is read in one transaction. A database without a write-ahead log is read
// without any lock or file beside it.
//
// # Sessions
//
// The session keeps its id. A sub-agent names its parent in parentID. A fork does not name
// its origin. It begins with copies of messages: they are older than the session, and have
// other ids. The session that is imported first owns a message. In another session, the events
// of a message with equal content and the same time are inherited.
//
// # Events
//
// A document becomes a session_started and these events:
//
//	message of the user             message_added
//	text or reasoning of an answer  message_added
//	tool part                       message_added for the call, and one for the result
//	step-finish part                step_completed with tokens and cost
//	summary that was requested      compaction_triggered after the answer
//	result that was cleared         compaction_triggered before the next message
//	revert of the session           head_moved to before the named message
//	error of an answer              "opencode:error", the raw value
//	any other part                  "opencode:<type>", the raw part
//
// The events of one answer share a group. An answer without a step-finish part adds one
// step_completed with the tokens and cost of the message.
//
// # Repeated imports
//
// The ids of messages and parts identify events. A second import adds only new events. A
// part that has changed is added raw. A part that OpenCode is still writing is held
// until it is complete. A truncated file is rejected: the rest of the session is
// imported without it, and a later import adds it.
//
// Databases and documents were tested with sessions that OpenCode 1.18 wrote. The layout of
// the storage comes from its source code in early 2026.
//
// # Code
//
//	opencode.go                Format: detection
//	database.go, rows.go       a database to documents
//	storage.go, gatherer.go    paths and files of the storage
//	session.go                 a document to a session of items
//	message.go, answer.go, tool.go, compaction.go   a message to its items
//	progress.go                parts that OpenCode is still writing
//
// Package internal/document adds the items to the log.
package opencode

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "opencode"

// Format imports sessions of OpenCode. The zero value is ready for use.
type Format struct{}

// Name is "opencode".
func (Format) Name() string { return formatName }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "XDG_DATA_HOME", Home: ".local/share", Path: "opencode/opencode.db"},
		{Variable: "XDG_DATA_HOME", Home: ".local/share", Path: "opencode/storage"},
	}
}

// Declare gives the session. All files are imported one after the other, because each can have
// messages that another one has.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) (owned []string) {
		owned = []string{"opencode:copies"}
		if isDatabase(src.Name, begin) {
			return append(owned, sessionsIn(src)...)
		}
		h := head.Begins(begin)
		if id := cmp.Or(h.In("info").Text("id"), h.Text("sessionID"), h.Text("id")); id != "" {
			owned = append(owned, id)
		}
		return owned
	})
}

// sessionsIn are the sessions of a database; none if it cannot be read.
func sessionsIn(src interop.Source) []string {
	d, err := openDatabase(src)
	if err != nil {
		return nil
	}
	ids, _ := d.ids(context.Background()) // the import reports the error
	_ = d.close()
	return ids
}

// Detect reports whether the file is a database, of the storage, or an exported session.
func (Format) Detect(name string, begin []byte) bool {
	if isDatabase(name, begin) {
		return true
	}
	if head.IsArray(begin) {
		return false
	}
	if isStored(name, head.Begins(begin)) {
		return true
	}
	info := head.Begins(begin).In("info")
	return info.Text("id") != "" && (info.Has("projectID") || info.Has("directory", "version"))
}

// Import appends the records that the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	begin, err := src.Head()
	if err != nil {
		return interop.Result{}, err
	}
	if isDatabase(src.Name, begin) {
		return importDatabase(ctx, log, src)
	}
	if _, kind, _ := stored(src.Name); kind == "" {
		return document.Import(ctx, log, src, formatName, read)
	}
	session := sessionOf(src.Name)
	if session == "" {
		return records.Refuse(src, errNoSession), nil
	}
	if session != src.Name {
		src = interop.Source{Name: session, Open: func() (io.ReadCloser, error) { return os.Open(session) }}
	}
	return document.ImportRecords(ctx, log, src, formatName, storage(src), read)
}

// importDatabase imports all sessions of a database.
func importDatabase(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	d, err := openDatabase(src)
	if err != nil {
		return interop.Result{}, err
	}
	result, err := document.ImportRecords(ctx, log, src, formatName, d.records(ctx, src), read)
	return result, errors.Join(err, d.close())
}
