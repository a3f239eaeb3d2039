// Package entire imports transcripts in the Entire Transcript Format, version 1:
// the compact transcripts (transcript.jsonl) that the Entire CLI writes of the
// sessions of other agents.
//
// A line is what the user said, or an answer. What the user says becomes one
// message_added; an answer several of one group, one for each block, and behind a
// call the result that stands in it, once it has one. Tokens, of which the format
// tells those of the input and of the output, are at the first piece of the answer; one
// that says nothing becomes a step_completed with them. Blocks of other types are
// opaque parts; lines of other types or another version, and those that say nothing,
// are kept raw as "entire:<type>". What no event has a member for stays in the extra
// of its message or part, and the version of the CLI in that of session_started; where
// the file has another one later, that becomes a session_updated.
//
// There is no id in the file. A session is named by its first line: by the agent, the
// time, and digits of what it begins with, so that all transcripts of a session, of
// which the CLI keeps one with every checkpoint, are one session wherever they stand.
// Where the first line has no time, it is named by the file.
//
// The CLI writes a transcript anew whenever it grows, and the last line may grow
// itself: its calls get their results, and more blocks come. A block is known again by
// what it says and by all that is said before it, but for results, and a result by its
// call. So what is new is added behind it, and a result behind what followed its call;
// one that says something else than before is kept raw. Where a file parts from what
// the log has, as when an agent went back, a head_moved leads to the last that is the
// same, and the rest is another branch. What an answer took that grew becomes a
// step_completed at the end.
//
// The rules are those of the format's description in the CLI's repository
// (transcript/README.md of github.com/entireio/cli, 2026) and of what its converters
// write, and were held against a transcript of the CLI's 0.8. A line that is cut off
// is refused, those before it are imported.
package entire

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "entire"

// Format imports transcripts of the Entire CLI. The zero value is ready for use.
type Format struct{}

// Name is "entire".
func (Format) Name() string { return Name }

// Declare gives the agent and the time of the first line, which name the session. A
// session without a time is named by its file.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	h := head.Begins(begin)
	if at := h.Text("ts"); !interop.Time(at).IsZero() {
		ids.Owns = []string{"entire:" + h.Text("agent") + " " + at}
	}
	return ids
}

// Detect looks for the version and the type of the first line, and for what wrote it.
func (Format) Detect(_ string, begin []byte) bool {
	if head.IsArray(begin) {
		return false
	}
	h := head.Begins(begin)
	return string(h["v"]) == version && h.Text("type") != "" && (h.Has("cli_version") || h.Has("agent"))
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	var t transcript
	return document.ImportRecords(ctx, log, src, Name, t.gathered(src), t.read)
}
