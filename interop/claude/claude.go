// Package claude imports the sessions of Claude Code.
//
// # Files
//
// Claude Code writes one JSON object a line:
//
//	~/.claude/projects/<folder>/<session>.jsonl                       a session
//	~/.claude/projects/<folder>/<session>/subagents/agent-<id>.jsonl  a sub-agent (newer versions)
//	~/.claude/projects/<folder>/agent-<id>.jsonl                      a sub-agent (older versions)
//
// # Sessions
//
// The sessionId of a line names its session. A line of a sub-agent (isSidechain) belongs
// to a session of its own: "<session>.agent-<agentId>", or "<session>.side-<uuid of its
// first line>" if the line has no agentId. A line without a sessionId belongs to the
// session of the lines before it.
//
// A session begins with its first prompt, assistant line or tool result. Earlier lines
// are held until then. So a file gives the same events, whether it is imported whole or
// while it grows. The first title is the newest title among the held lines, or the first
// line of the prompt. A later title is an update. A summary is a title when the session
// has the line of its leafUuid, unless the session has a name. Summaries at the start of
// the other files of the folder count too.
//
// # Events
//
// Each line becomes one event:
//
//	user, assistant                    message_added; members that a message lacks are in its extra
//	attachment, queued_command         message_added: what the user typed while the model worked
//	system, compact_boundary           "claude:system:compact_boundary"; see below
//	system, microcompact_boundary      compaction_triggered, which clears tool results
//	summary, custom-title, ai-title    session_updated with the title
//	/clear in a new conversation       a compaction_triggered before it that covers all
//	last-prompt with another leafUuid  a head_moved before it: the session was rewound and left
//	any other                          "claude:<type>" or "claude:<type>:<subtype>", the raw record
//
// The summary after a compact_boundary becomes a compaction_triggered. If no summary
// follows, the compaction_triggered is added before the next message.
//
// A user line that a program wrote (origin.kind, isMeta, sourceToolUseID, or the beginning
// of its text) is context, and so are a queued notification and the output of a command that the
// user ran. A result before its call stays where it is; readers pair them by
// the id of the call.
//
// What Claude Code measured is in the metadata of the raw record: turn_ms of a turn_duration,
// and reported_cost of a cost-state.
//
// Some lines add more events. The first line of a session adds session_started. A line
// that continues from an earlier point adds a head_moved before it; see tree. The
// session that calls a sub-agent gets child_requested with the call, child_started with
// the first line that names the sub-agent's session, and child_completed, child_failed
// or child_canceled with the result of the call. If the sub-agent runs in the
// background, its notification ends it. Only the file of the calling session adds these
// events. A progress record of a sub-agent has a line of it. If the sub-agent has no file, the
// line is added to its session too. The format does not record turns, so there are no turn events: readers derive
// turns from messages.
//
// # Repeated imports
//
// A line is identified by its uuid and its bytes, or by its bytes alone. A second import,
// a longer version of the file, or a copy of it adds only new events. A line whose parent is missing or null follows the line before it. If
// the parent of a session's first line is missing, another file may begin the session:
// Declare names the parent, and that file is imported first.
//
// # Copies
//
// Claude Code copies lines with their uuids into the files of other sessions. A new session
// whose file begins with the lines of another session is a fork of it. The events of other
// copied lines are marked as inherited. Declare gives the uuids, so that an original is
// imported before its copies.
//
// # Code
//
//	claude.go                  Format: detection and order of files
//	importer.go                lines to sessions; held lines
//	events.go, start.go        a line to its events
//	facts.go, block.go         parsed lines and content blocks
//	message.go, compaction.go, children.go, opening.go   conversions
//	beside.go                  titles in other files of the folder
//	progress.go                lines of sub-agents without a file
//	fork.go                    files that begin with the lines of another session
//	session.go, tree.go        state of a session, from its events; branches
package claude

import (
	"context"
	"errors"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "claude"

// Format imports Claude Code sessions. The zero value is ready for use.
type Format struct{}

// Name is "claude".
func (Format) Name() string { return formatName }

// Scope says that an import reads its file, and the summaries in other files of the folder.
func (Format) Scope() importrun.Scope { return importrun.OwnFolder }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "CLAUDE_CONFIG_DIR", Home: ".claude", Path: "projects"},
		{Variable: "XDG_CONFIG_HOME", Home: ".config", Path: "claude/projects"},
	}
}

// Detect reports whether one of the first lines is a record of Claude Code.
func (Format) Detect(_ string, first []byte) bool {
	for line := range head.Lines(first) {
		if isRecord(head.Object(line)) {
			return true
		}
	}
	return false
}

// bookkeeping lists the types of records that may lack a session id.
var bookkeeping = []string{"summary", "file-history-snapshot", "file-history-delta", "ai-title", "custom-title", "last-prompt"}

// isRecord reports whether a line begins a record. The end of the line may be missing.
func isRecord(h head.Head) bool {
	kind := h.Text("type")
	return kind != "" && (h.Has("sessionId") || (h.Has("leafUuid") || h.Has("messageId")) && slices.Contains(bookkeeping, kind))
}

// Import appends the records that the log does not have yet. After an error, the
// appended events stay, and a second import appends the missing ones.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := newImporter(ctx, log, src)
	err := im.result.Take(records.Records(src), im.record)
	if err == nil {
		err = im.titleFromBeside(src.Name)
	}
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result.Result, err
}
