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
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Name is the name of the format.
const Name = "codex"

// Format imports Codex sessions. The zero value is ready for use.
type Format struct{}

// Name is "codex".
func (Format) Name() string { return Name }

// Rank puts forks and sub-agents after what they come from.
func (Format) Rank(_ string, head []byte) int {
	var first header
	copies := 0
	for raw := range bytes.Lines(head) {
		rec := interop.Record{Value: jsontext.Value(bytes.TrimSpace(raw))}
		if !rec.Value.IsValid() || rec.Value.Kind() != '{' {
			break
		}
		l, err := readLine(&rec)
		if err != nil || l.kind != metaKind {
			break
		}
		if first.id == "" {
			first = headerOf(l)
		} else if l.text("id") != first.id {
			copies++
		}
	}
	if first.parent() == "" {
		return 0
	}
	return max(1, copies)
}

// kinds are the types of records that stand around a payload.
var kinds = []string{metaKind, itemKind, eventKind, "turn_context", "compacted", "world_state", "inter_agent_communication_metadata"}

// Detect looks for a record of Codex among the first lines.
func (Format) Detect(_ string, head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) > 0 && isRecord(line) {
			return true
		}
	}
	return false
}

// isRecord reports whether a line, which may be cut, begins a record, or the
// header of an older file.
func isRecord(b []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	var kind string
	has := map[string]bool{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		member := name.String()
		has[member] = true
		if member != "type" {
			if d.SkipValue() != nil {
				break
			}
			continue
		}
		v, err := d.ReadValue()
		if err != nil {
			break
		}
		kind, _ = interop.Text(v)
	}
	if kind == "" {
		return !has["type"] && has["id"] && has["timestamp"] && has["instructions"]
	}
	return has["payload"] && slices.Contains(kinds, kind)
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log}
	err := im.run(src)
	im.finish()
	return im.result, err
}

// run imports record by record. What was added before an error is kept, unless
// the error is that the session's history is another one.
func (im *importer) run(src interop.Source) error {
	for rec, err := range interop.Records(src) {
		var refused *interop.RecordError
		if err != nil && !errors.As(err, &refused) {
			return errors.Join(err, im.flush())
		}
		im.result.Records++
		if refused == nil {
			err = im.record(&rec)
		}
		if errors.As(err, &refused) {
			im.result.Refuse(refused)
		} else if err != nil {
			return errors.Join(err, im.flush())
		}
	}
	return im.flush()
}
