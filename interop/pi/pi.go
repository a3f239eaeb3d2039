// Package pi imports the sessions that the coding agent pi keeps as lines of
// JSON (~/.pi/agent/sessions/<folder>/<time>_<session>.jsonl), of versions 1 to 3.
//
// The header becomes the session_started. Every further line becomes one event:
// user, assistant and toolResult messages a message_added; commands that the user
// ran, messages of extensions and summaries of branches a context_added; a
// compaction a compaction_triggered; a session's name a session_updated; all else
// "pi:<type>" or "pi:message:<role>" with the raw record. What the log has no
// member for stays in the extra of the event. There are no turns: the format does
// not tell them, and without any they are derived from the messages.
//
// Lines name their parent (version 1 has no ids: each follows the one before), and
// the last line is the leaf. Where a line goes on from an earlier point, and
// conversation was left behind, a head_moved leads there. A line whose parent is
// missing follows the line before it.
//
// A file that pi made as a copy of another (parentSession, or branchedFrom in
// version 1) becomes a fork of that session, by reference, behind the longest
// prefix that both have, where the log has it. Copied lines that the log has not
// are marked as inherited.
//
// Event ids are made of the session id and of what the record says, without the
// ids that pi added to the lines of version 1 when it rewrote them: importing
// again, a longer version, or the same session after an upgrade of pi adds only
// what is new. A session begins with its first message; until then its records are
// held, so that a file gives the same events whether it is imported whole or while
// it grows. So are those of a copy that says nothing of its own.
package pi

import (
	"bytes"
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "pi"

// Format imports sessions of pi. The zero value is ready for use.
type Format struct{}

// Name is "pi".
func (Format) Name() string { return Name }

// Declare gives the sessions of the headers, and the sessions that they are copies
// of.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	for line, err := range interop.Lines(src) {
		if err != nil {
			break
		}
		if !bytes.Contains(line, []byte(`"session"`)) {
			continue
		}
		f, err := read(&interop.Record{Value: line})
		if err != nil || f.kind != "session" || f.id == "" {
			continue
		}
		ids.Owns = append(ids.Owns, f.id)
		if parent := parentOf(&f); parent != "" {
			ids.Needs = append(ids.Needs, parent)
		}
	}
	return ids
}

// Detect looks at the first line, which must be the header of a session.
func (Format) Detect(_ string, first []byte) bool {
	return isHeader(firstLine(first))
}

// firstLine is the first line that is not empty.
func firstLine(first []byte) []byte {
	for line := range head.Lines(first) {
		return line
	}
	return nil
}

// Import appends what the source holds and the log does not have yet. What was
// added before an error is kept, but for the session that the error is about.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log, sessions: map[string]*session{}}
	err := im.result.Take(interop.Records(src), im.record)
	err = errors.Join(err, im.flush())
	im.finish()
	return im.result, err
}
