// Package openhands imports the runs and conversations of OpenHands.
//
// # Files
//
// OpenHands writes its events in four layouts:
//
//	output.jsonl                       an evaluation: on each line an instance with a history of events
//	<any>.json                         a trajectory: a list of events, or an object with a list
//	<any>.jsonl                        a conversation: an event on each line
//	<conversation>/base_state.json     a conversation: its state (newer versions), and
//	<conversation>/events/*.json       an event in each file
//
// The import of any file of a conversation folder imports the whole conversation.
//
// # Sessions
//
// An instance of an evaluation is a session, named by the instance id and digits of the
// path. A conversation folder is a session named by the folder. If the name is shorter
// than 12 characters, the id has digits of the path too. Any other file is a session
// named by the file and digits of the path.
//
// # Events
//
// An event is an action or an observation, or has a kind (the software agent SDK):
//
//	system, SystemPromptEvent                          message_added
//	message, MessageEvent                              message_added
//	action of the agent, ActionEvent                   message_added with text, reasoning and call
//	observation of a call, ObservationEvent            message_added with the result
//	AgentErrorEvent, UserRejectObservation             message_added with a result that is an error
//	condensation, Condensation                         compaction_triggered, which replaces the one before
//	ConversationStateUpdateEvent                       raw; its metrics become a step_completed
//	any other                                          "openhands:<action, observation or kind>", the raw event
//
// The calls of one response share a group. The first of them has the tokens and cost. An
// action without a call, as in older versions, becomes a call with the name of the
// action. If the metrics of the file exceed the sum of its responses, the difference
// becomes a step_completed. The members beside the history are in the extra of
// session_started.
//
// The state of a conversation gives the model, the working directory, the tokens of each
// response, and the sum of tokens and costs. The rest of it is not imported, since it may
// contain secrets.
//
// # Repeated imports
//
// The ids of events identify them. A second import adds only new events, and an event
// that has changed is added raw. A truncated value is rejected; the lines before it are
// imported.
//
// # Code
//
//	openhands.go               Format: detection
//	folder.go, chain.go        the files of a conversation folder as one source
//	reader.go, evaluation.go, conversation.go   a value to a session of items
//	event.go, response.go      actions and observations to items
//	sdk.go                     events of the software agent SDK to items
//	condensation.go            condensations of both
//
// Package internal/document adds the items to the log.
package openhands

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

const formatName = "openhands"

// Format imports the files of OpenHands. The zero value is ready for use.
type Format struct{}

// Name is "openhands".
func (Format) Name() string { return formatName }

// Folders returns the folders of the program.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "OPENHANDS_CONVERSATIONS_DIR", Home: ".openhands/conversations"},
		{Variable: "OPENHANDS_PERSISTENCE_DIR", Home: ".openhands", Path: "conversations"},
		{Variable: "FILE_STORE_PATH", Home: ".openhands", Path: "sessions"},
	}
}

// Declare gives the conversation of a file in a conversation's folder. The file of
// an event needs the event before it, where no file represents both and the name is
// the event's number alone. Other names sort by number.
func (Format) Declare(src interop.Source) (ids interop.IDs) {
	name := conversationName(src.Name)
	if name == "" {
		return ids
	}
	f := document.NewFile(src)
	ids.Owns = []string{sessionID(&f, name)}
	n, ok := numberOf(src.Name)
	if !ok || first(src.Name) == src.Name || filepath.Base(src.Name) != strconv.Itoa(n)+".json" {
		return ids
	}
	ids.Owns = append(ids.Owns, eventID(src.Name, n))
	if before, ok := numberBefore(filepath.Dir(src.Name), n); ok {
		ids.Needs = []string{eventID(src.Name, before)}
	}
	return ids
}

// eventID is the id of an event in the folder of a file.
func eventID(path string, n int) string {
	return "openhands:" + filepath.Dir(path) + "/" + strconv.Itoa(n)
}

// Detect reports whether the file begins with an event, an evaluation or a state.
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

// listNames are the members that contain a list of events.
var listNames = []string{"history", "trajectory"}

func isEvent(h head.Head) bool {
	return h.Has("source", "timestamp") && (h.Has("action") || h.Has("observation") || h.Has("message") || h.Has("id") && isOfKind(h))
}

// isAlone reports whether a value is an event on a line or in a file of its own.
func isAlone(h head.Head) bool {
	switch h.Text("source") {
	case "agent", "user", "environment", "hook":
		return h.Has("id", "timestamp") && (h.Has("action", "args") || h.Has("observation", "content") || isOfKind(h))
	}
	return false
}

// isOfKind reports whether an event is of the software agent SDK. Its kind comes last,
// so the head of a long event may lack it.
func isOfKind(h head.Head) bool {
	for _, name := range []string{"kind", "system_prompt", "llm_message", "thought"} {
		if h.Has(name) {
			return true
		}
	}
	return false
}

// Import appends the records that the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	src, err := gatherFiles(src)
	if err != nil {
		return interop.Result{}, err
	}
	var r reader
	return document.Import(ctx, log, src, formatName, r.read)
}
