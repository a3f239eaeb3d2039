// Package gemini imports the sessions of Gemini CLI.
//
// # Files
//
// Gemini CLI writes one file for a session:
//
//	~/.gemini/tmp/<project>/chats/session-*.json    older versions: one JSON document
//	~/.gemini/tmp/<project>/chats/session-*.jsonl   newer versions: a header, then a line for each change
//
// A document is the header and the list of messages. Gemini CLI writes it again whenever
// the session grows. A message in it may have grown too.
//
// # Sessions
//
// The sessionId of the header names the session. If the start of a file is damaged, a later line
// names the session, or the name of the file does, which has the first digits of the id. Of a
// document, the messages after the damage are read. The session begins with its first
// message of the user or the model. Earlier records are held until then. A second file of a
// session of the log adds nothing before its first message.
//
// # Events
//
// A record is the header, a message, or a change:
//
//	header                  session_started
//	message, user           message_added
//	message, gemini         message_added for its thoughts and text, then for each tool call and each result
//	functionResponse        message_added with the result, if the message with the call does not have it
//	$set with a summary     session_updated with the title
//	$set with messages      message_added for each message that the session does not have
//	                        compaction_triggered if the list is another conversation
//	$rewindTo               "gemini:$rewindTo", the raw record; the next message follows a head_moved
//	any other               "gemini:<type>", the raw record
//
// The assistant messages of one record share a group. A message that begins with
// <session_context> is context of the program, and no input of a person. The format does not record
// turns, so there are no turn events: readers derive turns from messages.
//
// # Repeated imports
//
// An event is identified by the ids of its message and its call. A second import adds only new events: new calls, results, and tokens of a message that
// has grown. Tokens without a new message become a step_completed. If the newest message was
// written again with other words, the new version takes its place after a head_moved. An older message that
// changed is added raw. If a message follows an earlier one, since the
// session was rewound, a head_moved comes before it.
//
// # Code
//
//	gemini.go                  Format: detection
//	importer.go                documents and lines to records; held records
//	noheader.go                files without a header
//	events.go                  a record to its events
//	change.go, told.go         $set with messages, compared with the conversation so far
//	record.go                  parsed records
//	message.go, result.go      conversion of messages, calls and results
//	exchange.go                calls and results in the content of messages
//	session.go                 state of a session, from its events
//	write.go, place.go         a session as a file that the program goes on with
//	written.go                 records of such a file: the log has their events
package gemini

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "gemini"

// provider is the provider of the answers, and agentName the name of the program.
const (
	provider  = "google"
	agentName = "gemini-cli"
)

// Format imports sessions of Gemini CLI. The zero value is ready for use.
type Format struct{}

// Name is "gemini".
func (Format) Name() string { return formatName }

// Scope says that an import reads no other file.
func (Format) Scope() importrun.Scope { return importrun.OwnFile }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "GEMINI_CLI_HOME", Path: ".gemini/tmp"},
	}
}

// Declare gives the session that the file begins with, and of lines the others.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	last := cmp.Or(head.Object(begin).Text("sessionId"), idInName(src.Name))
	ids.Owns = append(ids.Owns, last)
	for line, err := range records.Lines(src) {
		if err != nil {
			break
		}
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"sessionId"`)) {
			continue
		}
		if id := head.Object(line).Text("sessionId"); id != "" && id != last {
			ids.Owns, last = append(ids.Owns, id), id
		}
	}
	return ids
}

// Detect reports whether the file begins with the header of a session, or has the name of a
// session and a record. The head may end anywhere.
func (Format) Detect(path string, first []byte) bool {
	if h := head.Object(first); h.Text("sessionId") != "" && h.Text("projectHash") != "" {
		return true
	}
	if idInName(path) == "" {
		return false
	}
	if isDocument(path) {
		return hasEntry(first)
	}
	for line := range head.Lines(first) {
		if isEntry(head.Object(line)) {
			return true
		}
	}
	return false
}

// Import appends the records that the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log, source: src, named: idInName(src.Name)}
	err := im.run(src)
	im.finish()
	return im.result.Result, err
}

// run imports all records. After an error, the appended events stay, and a second
// import appends the missing ones.
func (im *importer) run(src interop.Source) error {
	all, err := im.records()
	if err != nil {
		return err
	}
	for rec, err := range all {
		var refused *records.RecordError
		switch {
		case err == nil:
			err = im.value(&rec)
		case errors.As(err, &refused):
			err = im.truncated(&rec)
			im.result.Records++
			im.result.Reject(refused)
		}
		if err != nil {
			return errors.Join(err, im.flush())
		}
	}
	return im.flush()
}
