// Package codex imports the sessions that Codex keeps as lines of JSON
// (~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl).
//
// Each line {timestamp, type, payload} becomes one event: items of conversation
// a message_added, the start and the end of a task a turn_started and a
// turn_completed, a count of tokens that says something new a step_completed,
// compacted a compaction_triggered, thread_rolled_back a head_moved, and what
// tells of model, folder, settings or name a session_updated. All else is
// "codex:<type>", or "codex:<type>:<type of the payload>", with the raw record;
// so is what only repeats: notes of messages that are items as well, counts of
// tokens that have not changed. The items of one response have one group. A
// session begins with its first prompt, by which it is called, or with what the
// model did; until then its records are held.
//
// The first session_meta says which session it is; later ones, of sessions that it
// was forked from, are kept raw. A fork begins with a copy of its parent's
// lines. If the parent is in the log, the session is forked from it where the
// two part, and the copies are not stored again; until the file shows where that
// is, its records are held. Otherwise the copies are stored and marked as
// inherited, up to the first turn that is the fork's own.
//
// A session that called sub-agents says child_requested with the call,
// child_started when it learns of their sessions, and how they ended.
//
// Event ids are made of the session id and the payload: importing again, a longer
// version, or the same session from another path adds only what is new. Files of
// older versions, with a header without a type and bare items, are read too.
package codex

import (
	"context"
	"errors"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "codex"

// Format imports Codex sessions. The zero value is ready for use.
type Format struct{}

// Name is "codex".
func (Format) Name() string { return Name }

// Declare gives the session of the header, and the session that it was forked from
// or that called it.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	for line := range head.Lines(begin) {
		h := headerIn(line)
		if h.id == "" {
			continue
		}
		ids.Owns = []string{h.id}
		if parent := h.parent(); parent != "" {
			ids.Needs = []string{parent}
		}
		break
	}
	return ids
}

// headerIn is the header in a line, without an id if the line is none. Of a line
// that is longer than the head of the file it reads the ids.
func headerIn(line []byte) header {
	rec := interop.Record{Value: line}
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

// kinds are the types of records that stand around a payload.
var kinds = []string{metaKind, itemKind, eventKind, "turn_context", "compacted", "world_state", "inter_agent_communication_metadata"}

// Detect looks for a record of Codex among the first lines.
func (Format) Detect(_ string, first []byte) bool {
	for line := range head.Lines(first) {
		if isRecord(head.Object(line)) {
			return true
		}
	}
	return false
}

// isRecord reports whether a line, which may be cut off, begins a record, or the
// header of an older file.
func isRecord(h head.Head) bool {
	if h.Has("type") {
		return h.Has("payload") && slices.Contains(kinds, h.Text("type"))
	}
	return h.Has("id", "timestamp", "instructions")
}

// Import appends what the source holds and the log does not have yet. What was
// added before an error is kept, but for the session that the error is about.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log}
	err := im.result.Take(interop.Records(src), im.record)
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result, err
}
