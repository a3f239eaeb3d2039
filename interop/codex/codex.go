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
	"cmp"
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

// Lane is the session of the header.
func (Format) Lane(first []byte) string {
	for line := range head.Lines(first) {
		h := head.Object(line)
		return cmp.Or(h.In("payload").Text("id"), h.Text("id"))
	}
	return ""
}

// Rank puts forks and sub-agents after what they come from.
func (Format) Rank(_ string, first []byte) int {
	var own header
	copies := 0
	for line := range head.Lines(first) {
		rec := interop.Record{Value: line}
		if !rec.Value.IsValid() || rec.Value.Kind() != '{' {
			break
		}
		l, err := readLine(&rec)
		if err != nil || l.kind != metaKind {
			break
		}
		if own.id == "" {
			own = headerOf(l)
		} else if l.text("id") != own.id {
			copies++
		}
	}
	if own.parent() == "" {
		return 0
	}
	return max(1, copies)
}

// kinds are the types of records that stand around a payload.
var recordTypes = []string{metaKind, itemKind, eventKind, "turn_context", "compacted", "world_state", "inter_agent_communication_metadata"}

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
		return h.Has("payload") && slices.Contains(recordTypes, h.Text("type"))
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
