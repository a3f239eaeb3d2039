// Package gemini imports the sessions that Gemini CLI keeps
// (~/.gemini/tmp/<project>/chats/session-*.json, one document each, or .jsonl, a
// line for each change).
//
// The members before the messages become the session_started. A message of the
// user is one message_added; an answer several of one group: its thoughts and its
// text, then each tool call, and behind it the call's result. A summary becomes a
// session_updated; notes that the model does not see, and all else, become
// "gemini:<type>" with the raw record. There are no turns: the format does not
// tell them, and without any they are derived from the messages.
//
// A document is written anew whenever something was said, and its messages may
// have grown: calls, results and tokens that were not there before are appended;
// tokens that come late become a step_completed. A message that changed otherwise
// is kept raw. Where a message follows one that others followed already, because
// the session was rewound, a head_moved leads there.
//
// Event ids are made of the session id and the ids of messages and calls:
// importing again, or a longer version, adds only what is new. A session begins
// with its first message of the user or the model; until then its records are
// held.
package gemini

import (
	"bytes"
	"context"
	"errors"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "gemini"

// Format imports sessions of Gemini CLI. The zero value is ready for use.
type Format struct{}

// Name is "gemini".
func (Format) Name() string { return Name }

// Declare gives the session that the file begins with, and of lines the others.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	begin, err := src.Head()
	if err != nil {
		return ids
	}
	last := head.Object(begin).Text("sessionId")
	ids.Owns = append(ids.Owns, last)
	for line, err := range interop.Lines(src) {
		if err != nil {
			break
		}
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"sessionId"`)) {
			continue
		}
		if id := head.Object(line).Text("sessionId"); id != "" && id != last {
			ids.Owns, last = append(ids.Owns, id), id
		}
	}
	return ids
}

// Detect looks for the members that a session begins with. The head may end
// anywhere.
func (Format) Detect(_ string, first []byte) bool {
	h := head.Object(first)
	return h.Text("sessionId") != "" && h.Text("projectHash") != ""
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	im := &importer{ctx: ctx, log: log}
	err := im.run(src)
	im.finish()
	return im.result, err
}

// run imports record by record. What was added before an error is kept, but for
// the session that the error is about.
func (im *importer) run(src interop.Source) error {
	for rec, err := range interop.Values(src) {
		var refused *interop.RecordError
		switch {
		case err == nil:
			err = im.value(&rec)
		case errors.As(err, &refused):
			err = im.before(&rec)
			im.result.Records++
			im.result.Reject(refused)
		}
		if err != nil {
			return errors.Join(err, im.flush())
		}
	}
	return im.flush()
}
