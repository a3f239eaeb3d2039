// Package stream imports what agents print on standard output while they run without a
// terminal: "codex exec --json" and "claude --output-format stream-json". The transcript
// that the agent stores has more: times, prompts, and the turns of a resumed session.
//
// # Sessions
//
// A stream has the session id of the transcript, so a log has a session from one of them
// only; the import of the other one fails. A sub-agent of Claude Code is a session of its
// own. No line has a time: the events have no date.
//
// # Events
//
//	codex: agent_message, reasoning          message_added
//	codex: command_execution, mcp_tool_call,
//	       file_change                       message_added with the call, and with the result
//	codex: turn.completed                    step_completed with the tokens of the turn
//	claude: assistant, user                  message_added
//	claude: result                           "stream:result"; the tokens and cost that the
//	                                         answers lack become a step_completed
//	any other                                "stream:<type>", the raw line
//
// The lines item.started and item.updated are skipped: item.completed repeats them.
//
// # Repeated imports
//
// Package internal/document identifies a line by its content and the line before it. A
// second import, or the import of a longer stream, adds only new events.
//
// The layouts come from the public source code of two readers: the SDK of Codex
// (sdk/typescript in github.com/openai/codex) and the parser of the Claude Agent SDK
// (message_parser.py in github.com/anthropics/claude-agent-sdk-python, 2026). They have not
// been tested with streams of the programs.
package stream

import (
	"context"
	"iter"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "stream"

// Format imports streams of Codex and Claude Code. The zero value is ready for use.
type Format struct{}

// Name is "stream".
func (Format) Name() string { return formatName }

// Detect reports whether the first line begins a stream.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Object(begin)
	switch h.Text("type") {
	case "thread.started":
		return h.Has("thread_id")
	case "system", "assistant", "user":
		return h.Text("session_id") != "" && !h.Has("sessionId") && (h.Has("subtype") || h.Has("message"))
	}
	return false
}

// Declare gives the session of the first line.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) (owned []string) {
		h := head.Object(begin)
		for _, name := range []string{"thread_id", "session_id"} {
			if id := h.Text(name); id != "" {
				owned = append(owned, id)
			}
		}
		return owned
	})
}

// Import appends the records that the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	var r reader
	return document.ImportRecords(ctx, log, src, formatName, r.records(src), r.read)
}

// reader collects the lines of a stream.
type reader struct{ lines []records.Record }

// records yields the lines that cannot be parsed, and at the end the first of the others.
func (r *reader) records(src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for rec, err := range records.Records(src) {
			if err == nil {
				r.lines = append(r.lines, rec.Clone())
			} else if !yield(rec, err) {
				return
			}
		}
		if len(r.lines) > 0 {
			yield(r.lines[0], nil)
		}
	}
}

// read returns the sessions of all lines.
func (r *reader) read(_ *document.File, _ *records.Record) ([]document.Session, error) {
	b := builder{sessions: map[string]*session{}}
	for i := range r.lines {
		b.add(&r.lines[i])
	}
	all := make([]document.Session, 0, len(b.order))
	for _, s := range b.order {
		s.Totals = s.totals
		all = append(all, s.Session)
	}
	return all, nil
}
