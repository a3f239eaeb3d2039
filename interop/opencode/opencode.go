// Package opencode imports the sessions that "opencode export" writes: one JSON
// document with what is known of the session, and its messages, each of parts. So it
// does those of its storage, which versions before the database kept in a file for
// each session, message and part: the file of the session stands for all.
//
// A session keeps its id, and names that of which it is a sub-agent. What the user
// says becomes one message_added; an answer several of one group, one for each
// text, reasoning and tool call, and behind a call its result, once it has one. The
// end of a step becomes a step_completed, with its tokens and its cost; an answer
// without any tells them itself. Other parts, such as snapshots, patches, retries
// and sub-tasks, and errors of answers, are kept raw as "opencode:<type>". Messages
// and parts are known again by their ids: one that says something else than before
// is kept raw.
//
// Behind a summary that was asked for stands a compaction_triggered: the model is
// shown the summary, and of what was said before it the end that was to stay.
// Another one, before the next message, says that a result is shown no more. Where
// the session was reverted, a head_moved leads to before the message that it names;
// what is said next follows there.
//
// The shape was taken from the source of OpenCode, of early 2026; no session of a
// user was at hand. A document that is cut off is refused, and so is a file of the
// storage; what it is a part of is imported without it, and with it later.
package opencode

import (
	"cmp"
	"context"
	"io"
	"os"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "opencode"

// Format imports sessions of OpenCode. The zero value is ready for use.
type Format struct{}

// Name is "opencode".
func (Format) Name() string { return Name }

// Declare gives the session.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	h := head.Begins(begin)
	if id := cmp.Or(h.In("info").Text("id"), h.Text("sessionID"), h.Text("id")); id != "" {
		ids.Owns = []string{id}
	}
	return ids
}

// Detect looks for the id of a session, and for what a project has.
func (Format) Detect(name string, begin []byte) bool {
	if head.IsArray(begin) {
		return false
	}
	if isStored(name, head.Begins(begin)) {
		return true
	}
	info := head.Begins(begin).In("info")
	return info.Text("id") != "" && (info.Has("projectID") || info.Has("directory", "version"))
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	if _, kind, _ := stored(src.Name); kind == "" {
		return document.Import(ctx, log, src, Name, read)
	}
	session := sessionOf(src.Name)
	if session == "" {
		rec := interop.Record{Source: src.Name, Line: 1}
		result := interop.Result{Records: 1}
		result.Reject(rec.Reject(errAlone))
		return result, nil
	}
	if session != src.Name {
		src = interop.Source{Name: session, Open: func() (io.ReadCloser, error) { return os.Open(session) }}
	}
	return document.ImportRecords(ctx, log, src, Name, storage(src), read)
}
