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
// line before it. The head ends at the newest line of conversation.
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
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Name is the name of the format.
const Name = "claude"

// Format imports Claude Code sessions. The zero value is ready for use.
type Format struct{}

// Name is "claude".
func (Format) Name() string { return Name }

// Rank puts the files of sub-agents after those of sessions.
func (Format) Rank(name string, _ []byte) int {
	slashed := filepath.ToSlash(name)
	if strings.Contains(slashed, "/subagents/") || strings.HasPrefix(filepath.Base(name), "agent-") {
		return 1
	}
	return 0
}

// Detect looks for a record of Claude Code among the first lines.
func (Format) Detect(_ string, head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) > 0 && isRecord(line) {
			return true
		}
	}
	return false
}

// bookkeeping are the types of records that may stand without a session id.
var bookkeeping = []string{"summary", "file-history-snapshot", "file-history-delta", "ai-title", "custom-title", "last-prompt"}

// isRecord reports whether a line, which may be cut, begins a record.
func isRecord(b []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	var kind string
	var session, leaf bool
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		switch member := name.String(); member {
		case "type":
			v, _ := d.ReadValue()
			kind, _ = interop.Text(v)
			continue
		case "sessionId":
			session = true
		case "leafUuid", "messageId":
			leaf = true
		}
		if d.SkipValue() != nil {
			break
		}
	}
	return kind != "" && (session || leaf && slices.Contains(bookkeeping, kind))
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := newImporter(ctx, log)
	err := im.run(src)
	im.finish()
	return im.result, err
}

// run imports record by record. What was added before an error is kept, but for
// the session that the error is about.
func (im *importer) run(src interop.Source) error {
	for rec, err := range interop.Records(src) {
		var refused *interop.RecordError
		if err != nil && !errors.As(err, &refused) {
			return errors.Join(err, im.flush())
		}
		im.result.Records++
		if refused == nil {
			err = im.record(rec)
		}
		if errors.As(err, &refused) {
			im.result.Refuse(refused)
		} else if err != nil {
			return errors.Join(err, im.flush())
		}
	}
	return im.flush()
}
