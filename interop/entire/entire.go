// Package entire imports transcripts in the Entire Transcript Format, version 1. The
// Entire CLI writes these compact transcripts (transcript.jsonl) for the sessions of
// other agents.
//
// # Events
//
// A line is a user message or an answer of the agent. A user line becomes one
// message_added. An answer becomes one message_added per block, all in one group. The
// result of a call becomes a message_added after the call. The first message of an
// answer carries the token counts, input and output. An answer without blocks becomes
// a step_completed with its token counts. A block of an unknown type becomes an
// opaque part. Lines of another type or version, and lines without content, are
// stored raw as "entire:<type>".
//
// Members without a counterpart in the event go to the extra of the message or part.
// The extra of session_started holds the version of the CLI. If a later file has
// another version, a session_updated records it.
//
// # Session ids
//
// A transcript holds no session id. The importer makes the id from the agent and the
// time of the first line. The CLI stores one transcript per checkpoint, and all
// transcripts of a session get the same id, in any folder. If the first line has no
// time, or if a transcript with another beginning has its agent and time, the importer
// makes the id from the file name and the path.
//
// # Growing files
//
// The CLI rewrites a transcript when it grows. The last line can grow too: its calls
// get results, and more blocks follow. A block is identified by its content, without the
// result, and by the block before it. A result is identified by its call. So a
// longer transcript adds only the new blocks and results. A late result follows the
// events that are already in the log. A result with other content than before is
// stored raw.
//
// If the agent went back, the file differs from the log. Then a head_moved leads to
// the last common event, and the rest of the file becomes another branch. If an
// answer grows, a step_completed at the end adds the new tokens.
//
// A line that is cut off is rejected. The lines before it are imported.
//
// The rules follow the format's description (transcript/README.md of
// github.com/entireio/cli, 2026) and the code of its converters. The importer was
// checked against a transcript of CLI version 0.8.
package entire

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "entire"

// Format imports transcripts of the Entire CLI. The zero value is ready for use.
type Format struct{}

// Name returns "entire".
func (Format) Name() string { return formatName }

// Declare gives the agent and the time of the first line, which name the session. A
// session without a time is named by its file.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) (owned []string) {
		h := head.Begins(begin)
		if at := h.Text("ts"); !records.Time(at).IsZero() {
			owned = append(owned, "entire:"+h.Text("agent")+" "+at)
		}
		return owned
	})
}

// Detect checks the version and the type of the first line, and that it names an
// agent or a CLI version.
func (Format) Detect(_ string, begin []byte) bool {
	if head.IsArray(begin) {
		return false
	}
	h := head.Begins(begin)
	return string(h["v"]) == version && h.Text("type") != "" && (h.Has("cli_version") || h.Has("agent"))
}

// Import appends the events of the source that are not in the log yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	var t transcript
	return document.ImportRecords(ctx, log, src, formatName, t.collect(src), t.read)
}
