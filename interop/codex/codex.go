// Package codex imports the sessions of Codex.
//
// # Files
//
// Codex writes one file for a session, with one JSON object a line:
//
//	~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl
//
//	{"timestamp": …, "type": …, "payload": {…}}
//
// In older versions the first line is a header without a type, and the other lines are
// payloads without an envelope.
//
// # Sessions
//
// The first session_meta of a file names the session. Further session_meta lines belong
// to ancestors of a fork. They stay raw. If the first line is damaged, the name of the file
// gives the session its id, and a later version of the file adds the header. A session begins with its first prompt or with
// the first item of the model. Earlier lines are held until then. The first prompt is
// the title.
//
// # Events
//
// Each line becomes one event:
//
//	session_meta                               session_started
//	response_item                              message_added; the items of one response share a group
//	turn_context                               session_updated with new settings
//	compacted                                  compaction_triggered
//	event_msg, task_started                    turn_started
//	event_msg, task_complete or turn_aborted   turn_completed
//	event_msg, token_count                     step_completed, if the count is new
//	event_msg, thread_rolled_back              head_moved
//	event_msg, thread_settings_applied         session_updated with new settings
//	event_msg, thread_name_updated             session_updated with the title
//	event_msg, collab_agent_spawn_end          child_started or child_failed
//	any other                                  "codex:<type>" or "codex:<type>:<payload type>", the raw record
//
// A line that repeats an earlier line in another form stays raw: an event_msg with the
// text of a message, a token_count without new tokens, settings without a change.
//
// Some lines add events after their own. The first prompt adds a session_updated with
// the title, if session_started has none. A call of spawn_agent adds child_requested,
// its result child_started, and the status of the sub-agent child_completed,
// child_failed or child_canceled.
//
// # Forks
//
// The file of a fork begins with copies of its parent's lines. If the log has the
// parent, the session becomes a fork of it at the last copy, and the copies are skipped.
// The lines are held until one is not a copy. If the log lacks the parent, the session owns
// the copies: they count in it. It names the parent as the session it is a copy of. If the
// parent, or another fork of it, is imported later, its events of these lines are inherited.
// If the parent was removed, the copies are left out.
//
// The header of a newer fork has a history_base: the file has no copies, and the session is
// a fork of the parent before the ordinal in the header. If the log lacks the parent, the
// session lacks the records before the ordinal, and the result says so.
//
// # Repeated imports
//
// A record is identified by its type and payload, without the timestamp: the n-th equal
// record of the file is the n-th of the session. A second import, a longer version of the
// file, or a copy of it adds only new events.
//
// # Code
//
//	codex.go                   Format: detection and order of files
//	importer.go                lines to the session; held lines and copies
//	events.go                  a line to its events
//	noheader.go                files without a header
//	line.go, header.go, shape.go   parsed lines, session_meta, possible types of events
//	item.go, turn.go, compaction.go, children.go   conversions
//	session.go, path.go        state of the session, from its events
//	parent.go, ancestry.go, ordinal.go   forks
//	owners.go                  lines that other sessions own
package codex

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "codex"

// Format imports Codex sessions. The zero value is ready for use.
type Format struct{}

// Name is "codex".
func (Format) Name() string { return formatName }

// Scope says that an import reads no other file.
func (Format) Scope() importrun.Scope { return importrun.OwnFile }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "CODEX_HOME", Home: ".codex", Path: "sessions"},
		{Variable: "CODEX_HOME", Home: ".codex", Path: "archived_sessions"},
	}
}

// Declare gives the session of the header, and the session that called it, or the sessions
// whose records the file begins with copies of. Files with copies from one session are imported
// one after the other.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	named := idInName(src.Name)
	first, _, _ := bytes.Cut(begin, []byte{'\n'})
	hasCopies := named != "" && headerIn(head.Trim(first)).id == "" // its header is damaged or missing
	if hasCopies {
		ids.Owns = []string{named}
	}
	need := func(id string) {
		if id == "" || slices.Contains(ids.Needs, id) || slices.Contains(ids.Owns, id) {
			return
		}
		if ids.Needs = append(ids.Needs, id); hasCopies {
			ids.Owns = append(ids.Owns, "codex:copies/"+id)
		}
	}
	for h := range headersIn(begin) {
		if ids.Owns == nil || h.id == named {
			ids.Owns, hasCopies = []string{h.id}, h.hasCopies()
			need(h.parent())
		} else {
			need(h.id)
		}
	}
	return ids
}

// headersIn are the first headers in a file: copies of the headers of other sessions follow the
// header of a fork.
func headersIn(begin []byte) iter.Seq[header] {
	return func(yield func(header) bool) {
		found := false
		for line := range head.Lines(begin) {
			h := headerIn(line)
			if h.id == "" && found || h.id != "" && !yield(h) {
				return
			}
			found = found || h.id != ""
		}
	}
}

// headerIn is the header in a line, without an id if the line is none. Of a line
// that is longer than the head of the file it reads the ids.
func headerIn(line []byte) header {
	rec := records.Record{Value: line}
	if !rec.Value.IsValid() {
		h := head.Object(line)
		if payload := h.In("payload"); h.Text("type") == metaKind {
			return header{id: payload.Text("id"), forkedFrom: payload.Text("forked_from_id"), spawnedBy: payload.Text("parent_thread_id")}
		}
		return header{}
	}
	if l, err := readLine(&rec); err == nil && l.kind == metaKind {
		return headerOf(l)
	}
	return header{}
}

// recordTypes are the types of lines with a payload.
var recordTypes = []string{metaKind, itemKind, eventKind, "turn_context", "compacted", "world_state", "inter_agent_communication_metadata"}

// Detect reports whether one of the first lines is a record of Codex.
func (Format) Detect(_ string, first []byte) bool {
	for line := range head.Lines(first) {
		if isRecord(head.Object(line)) {
			return true
		}
	}
	return false
}

// isRecord reports whether a line begins a record, or the header of an older file. The
// end of the line may be missing.
func isRecord(h head.Head) bool {
	if h.Has("type") {
		return h.Has("payload") && slices.Contains(recordTypes, h.Text("type"))
	}
	return h.Has("id", "timestamp", "instructions")
}

// Import appends the records that the log does not have yet. After an error, the
// appended events stay, and a second import appends the missing ones.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log, named: idInName(src.Name)}
	err := im.result.Take(records.Records(src), im.record)
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result.Result, err
}
