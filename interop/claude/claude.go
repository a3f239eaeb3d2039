// Package claude imports the sessions that Claude Code keeps as lines of JSON
// (~/.claude/projects/<folder>/<session>.jsonl, and sub-agents beside it).
//
// Each line becomes one event: user and assistant lines a message_added, with
// everything the log has no member for in its extra; the removal of old results
// a compaction_triggered; titles a session_updated; all else "claude:<type>" or
// "claude:<type>:<subtype>" with the raw record. A compact_boundary is among the
// latter: the summary that follows it becomes the compaction_triggered; without
// one, that stands before the next message. A session begins with
// session_started. There are no turns: the format does not tell all of them, and
// without any they are derived from the messages.
//
// Lines of sub-agents (isSidechain) go to sessions of their own:
// "<session>.agent-<agent id>", or "<session>.side-<uuid of the first line>" where
// there is no agent id. The session that called one says child_requested with
// the call, child_started where a line first tells its session, and
// child_completed, child_failed or child_canceled with the result of the call, or
// with the notification where it ran in the background. Only that session's own
// file decides what it says.
//
// Where a conversation was taken up again from an earlier point, a head_moved
// leads there; see tree. A line whose parent is missing or null follows the
// line before it. The head ends at the newest line of conversation. A file whose
// first line of a session has its parent in another file is imported after that
// file; see Declare.
//
// Event ids are made of the session id and the record, never of the path or
// the clock: importing again, a longer version, or the same session from another
// path adds only what is new. Records without a sessionId belong to the current
// session. A session begins with its first prompt, assistant line or tool
// result; until then its records are held, so that a file gives the same events
// whether it is imported whole or while it grows. The title it starts with is the
// newest of those held, or the first line of the prompt; later ones are updates.
package claude

import (
	"context"
	"errors"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "claude"

// Format imports Claude Code sessions. The zero value is ready for use.
type Format struct{}

// Name is "claude".
func (Format) Name() string { return Name }

// Detect looks for a record of Claude Code among the first lines.
func (Format) Detect(_ string, first []byte) bool {
	for line := range head.Lines(first) {
		if isRecord(head.Object(line)) {
			return true
		}
	}
	return false
}

// bookkeeping are the types of records that may stand without a session id.
var bookkeeping = []string{"summary", "file-history-snapshot", "file-history-delta", "ai-title", "custom-title", "last-prompt"}

// isRecord reports whether a line, which may be cut off, begins a record.
func isRecord(h head.Head) bool {
	kind := h.Text("type")
	return kind != "" && (h.Has("sessionId") || (h.Has("leafUuid") || h.Has("messageId")) && slices.Contains(bookkeeping, kind))
}

// Import appends what the source holds and the log does not have yet. What was
// added before an error is kept, but for the session that the error is about.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := newImporter(ctx, log)
	err := im.result.Take(interop.Records(src), im.record)
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result, err
}
