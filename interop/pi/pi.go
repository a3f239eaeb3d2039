// Package pi imports the sessions of the coding agent pi, of format versions 1 to 3.
//
// # Files
//
// pi writes one file for a session, with one JSON object a line:
//
//	~/.pi/agent/sessions/<folder>/<time>_<session>.jsonl
//
// The first line is the header, {"type": "session", "id": …}. A later line has an id and
// the id of its parent. Lines of version 1 have no ids: each follows the line before it.
//
// # Sessions
//
// The header names the session. If it is damaged, the name of the file does, and a later version
// of the file adds the header. The session begins with its first message. Earlier lines
// are held until then. So a file gives the same events, whether it is imported whole or
// while it grows.
//
// # Events
//
// Each line becomes one event. Members that the event lacks are in its extra:
//
//	session                                         session_started
//	message, role user, assistant or toolResult     message_added
//	message, role bashExecution or custom           context_added
//	custom_message, branch_summary                  context_added
//	compaction                                      compaction_triggered
//	context_edit                                    compaction_triggered of one message
//	usage, usage of a summary                       step_completed
//	session_info with a name                        session_updated with the title
//	any other                                       "pi:<type>" or "pi:message:<role>", the raw record
//
// A line that continues from an earlier point, and leaves messages off the path, adds a
// head_moved before it. A line whose parent is missing follows the line before it. The
// format does not record turns, so there are no turn events: readers derive turns from
// messages.
//
// # Forks
//
// The header of a copy names the original file (parentSession, or branchedFrom in
// version 1). If the log has the original, the session becomes a fork of it after the
// longest common prefix. The lines of a copy without lines of its own are held. If the
// log lacks the original, or a line of it, the copy owns the line: it counts there, and a file
// that is imported later has the line as an inherited event. If the original was removed, its
// lines are left out.
//
// # Repeated imports
//
// A record is identified by its id, or else by its content without ids, since pi adds ids
// when it upgrades a file of version 1. A second import, a longer version of the file, or an upgraded file adds only new
// events.
//
// # Code
//
//	pi.go                      Format: detection and order of files
//	importer.go                lines to sessions; held lines
//	noheader.go                files without a header
//	events.go                  a line to its events
//	edit.go                    edits of messages, and messages in a compaction
//	facts.go, message.go       parsed lines; conversion of messages
//	session.go                 state of a session, from its events
//	fork.go                    comparison with the original
package pi

import (
	"bytes"
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "pi"

// Format imports sessions of pi. The zero value is ready for use.
type Format struct{}

// Name is "pi".
func (Format) Name() string { return formatName }

// Scope says that an import reads no other file.
func (Format) Scope() importrun.Scope { return importrun.OwnFile }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "PI_CODING_AGENT_DIR", Home: ".pi/agent", Path: "sessions"},
	}
}

// Declare gives the sessions of the headers, the sessions that they are copies of, and the times
// of the records, which copies keep.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	for line, err := range records.Lines(src) {
		if err != nil {
			break
		}
		if f, ok := headerIn(line); ok {
			ids.Owns = append(ids.Owns, f.id)
			if parent := parentOf(&f); parent != "" {
				ids.Needs = append(ids.Needs, parent)
			}
			continue
		}
		_, rest, _ := bytes.Cut(line, []byte(`"timestamp":"`))
		stamp, _, ok := bytes.Cut(rest, []byte{'"'})
		at := records.Time(string(stamp))
		if !ok || at.IsZero() {
			continue
		}
		ids.Records = append(ids.Records, uint64(at.UnixNano()))
		if ids.From.IsZero() || at.Before(ids.From) {
			ids.From = at
		}
		if at.After(ids.To) {
			ids.To = at
		}
	}
	if named := idInName(src.Name); len(ids.Owns) == 0 && named != "" {
		ids.Owns = []string{named}
	}
	return ids
}

// headerIn is the header in a line, if the line is one.
func headerIn(line []byte) (f facts, ok bool) {
	if !bytes.Contains(line, []byte(`"session"`)) {
		return f, false
	}
	f, err := read(&records.Record{Value: line})
	return f, err == nil && f.kind == "session" && f.id != ""
}

// Detect reports whether the first line is the header of a session, or the file has the name
// of a session and a record.
func (Format) Detect(path string, first []byte) bool {
	if isHeader(firstLine(first)) {
		return true
	}
	if idInName(path) == "" {
		return false
	}
	for line := range head.Lines(first) {
		if isEntry(head.Object(line)) {
			return true
		}
	}
	return false
}

// firstLine returns the first line that is not empty.
func firstLine(first []byte) []byte {
	for line := range head.Lines(first) {
		return line
	}
	return nil
}

// Import appends the records that the log does not have yet. After an error, the
// appended events stay, and a second import appends the missing ones.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log, sessions: map[string]*session{}, named: idInName(src.Name)}
	err := im.result.Take(records.Records(src), im.record)
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result.Result, err
}
