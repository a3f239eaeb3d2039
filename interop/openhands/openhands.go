// Package openhands imports what OpenHands leaves behind: the output of an
// evaluation, a JSON object with a history of events on each line; trajectories, a
// JSON list of events, or an object that holds one; and conversations, an event in
// each file of a folder "events", or on each line of a file.
//
// Events are actions and observations, or, of the software agent SDK, name their
// kind. The system's and the user's messages become message_added, and so do those
// of the agent. An action that a tool call led to becomes the call, behind what the
// model said with it; several calls of one response are one group, which has its
// tokens and its cost. Actions of the agent without a call, as of older versions,
// become a call named by the action. The observation of a call becomes its result:
// an error where it says so, a command failed, or the user did not want it. A
// condensation becomes a compaction_triggered, which takes the place of the one
// before. All else, such as changes of state, errors that nothing was called for,
// recalled knowledge and requests, is kept raw as
// "openhands:<action, observation or kind>".
//
// Tokens and cost that the metrics tell beyond those of single responses become a
// step_completed. What stands around the history is in the extra of
// session_started. A session is named by the instance, with digits of the file's
// path, or by the file. What is cut off is refused; lines before it are imported.
//
// # Conversations
//
// A conversation is a session named by its folder, if the name is long enough to be
// its alone. It is imported as one file: base_state.json beside the folder of its
// events, or that of the first event, stands for all, which are its lines in their
// order. Of the state, the model and the working directory are taken, and no more:
// it holds settings that may be secret. A title comes with the user's first words.
package openhands

import (
	"context"
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "openhands"

// Format imports what OpenHands leaves behind. The zero value is ready for use.
type Format struct{}

// Name is "openhands".
func (Format) Name() string { return Name }

// Lane is one for all conversations whose events have files.
func (Format) Lane(begin []byte) string {
	if h := head.Begins(begin); !head.IsArray(begin) && (isAlone(h) || h.Has("id", "agent")) {
		return eventsFolder
	}
	return ""
}

// Detect looks for an event, or for what an evaluation begins with.
func (Format) Detect(name string, begin []byte) bool {
	h := head.Begins(begin)
	if head.IsArray(begin) {
		return isEvent(h)
	}
	for _, list := range listNames {
		if h.Has(list) {
			return isEvent(h.In(list))
		}
	}
	if filepath.Base(name) == stateName {
		return h.Has("id", "agent")
	}
	return isAlone(h) || h.Has("instance_id", "test_result")
}

// listNames are the members that hold events.
var listNames = []string{"history", "trajectory"}

func isEvent(h head.Head) bool {
	return h.Has("source", "timestamp") && (h.Has("action") || h.Has("observation") || h.Has("message") || h.Has("id") && isOfKind(h))
}

// isAlone reports whether a value is an event, which others may be like.
func isAlone(h head.Head) bool {
	switch h.Text("source") {
	case "agent", "user", "environment", "hook":
		return h.Has("id", "timestamp") && (h.Has("action", "args") || h.Has("observation", "content") || isOfKind(h))
	}
	return false
}

// isOfKind looks for what events of the software agent SDK have. Their kind stands
// behind all else.
func isOfKind(h head.Head) bool {
	for _, name := range []string{"kind", "system_prompt", "llm_message", "thought"} {
		if h.Has(name) {
			return true
		}
	}
	return false
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	src, err := gatherFiles(src)
	if err != nil {
		return interop.Result{}, err
	}
	var r reader
	return document.Import(ctx, log, src, Name, r.read)
}
