// Package cline imports the tasks of Cline, and of Roo Code, which began as a copy of
// Cline.
//
// # Files
//
// A task is a folder:
//
//	tasks/<task>/api_conversation_history.json   the messages, as the model sees them
//	tasks/<task>/ui_messages.json                the messages of the interface
//	tasks/<task>/task_metadata.json              models and versions (Cline)
//	tasks/<task>/history_item.json               title, folder and parent task (Roo Code)
//
// Newer versions of Cline write one document for a session:
//
//	sessions/<session>/<session>.messages.json
//
// The import of any file of a task imports the whole task. The messages of the
// interface repeat the messages of the model: the import takes their times, models,
// tokens and costs only. The list of files in task_metadata.json is not imported.
//
// # Sessions
//
// A task becomes a session with the name of its folder as its id. If the name is shorter
// than 12 characters, the id has digits of the path too. A document has the id of its
// session. A task of Roo Code names its parent.
//
// # Events
//
// One message of the file can contain results of calls, words of a person and texts of
// the program. It becomes an event for each of them:
//
//	<task>, <feedback>, <user_message>, <answer>    message_added of the user
//	any other text without a mark of the program    message_added of the user
//	tool_result, or text "[tool …] Result:"         message_added with the result
//	<environment_details>, reminders, notices       context_added
//	answer                                          message_added with reasoning, text and calls
//	summary of Roo Code                             compaction_triggered
//	deleted range of Cline, truncation of Roo Code  compaction_triggered without the messages
//	any other                                       "cline:message", the raw message
//
// A text "[tool …] Result:" answers the first call of that tool without a result. Older
// versions have the calls in the text of the answer, in XML: they become calls, and the
// extra of the message has the content of the file.
//
// An answer has the tokens and the cost of its request in ui_messages.json, or else of
// the message itself. Requests without an answer are in one more step_completed.
//
// # Repeated imports
//
// Package internal/document identifies a message by its content and the message before
// it. A second import adds only new messages. A task that was rewound gets a branch.
//
// # Code
//
//	cline.go                Format: detection
//	folder.go               the files of a task
//	facts.go, usage.go      times, models and usage from the files beside the messages
//	session.go              a list of messages to a session of items
//	truncation.go           messages that are not sent any more
//	said.go, user.go        a message of the user to results, words and contexts
//	answer.go, xml.go       an answer to a message with calls
package cline

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/records"
)

const formatName = "cline"

// Format imports tasks of Cline and Roo Code. The zero value is ready for use.
type Format struct{}

// Name is "cline".
func (Format) Name() string { return formatName }

// Folders returns the folders of the program. Cline and Roo Code are
// extensions of Visual Studio Code, whose folder depends on the system.
func (Format) Folders() []interop.Folder {
	return []interop.Folder{
		{Variable: "CLINE_DATA_DIR", Home: ".cline/data", Path: "tasks"},
		{Variable: "CLINE_DATA_DIR", Home: ".cline/data", Path: "sessions"},
		{Variable: "XDG_CONFIG_HOME", Home: ".config", Path: "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
		{Variable: "XDG_CONFIG_HOME", Home: ".config", Path: "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
		{Home: "Library/Application Support", Path: "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
		{Home: "Library/Application Support", Path: "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
		{Variable: "APPDATA", Home: "AppData/Roaming", Path: "Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
		{Variable: "APPDATA", Home: "AppData/Roaming", Path: "Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	}
}

// Declare gives the session of a task.
func (Format) Declare(src interop.Source) interop.IDs {
	return document.Owns(src, func(begin []byte) []string {
		f := document.NewFile(src)
		id, fallback := sessionIDs(&f)
		if own := head.Object(begin).Text("sessionId"); own != "" {
			id, fallback = documentIDs(&f, own)
		}
		if fallback == "" {
			return []string{id}
		}
		return []string{id, fallback}
	})
}

// Detect reports whether the file belongs to a task, by its name and its first members.
// A list of messages under another name is a task if its first messages have marks of
// Cline.
func (Format) Detect(name string, begin []byte) bool {
	h := head.Begins(begin)
	if !head.IsArray(begin) {
		switch fileKind(name) {
		case metadataFile:
			return h.Has("files_in_context") || h.Has("model_usage")
		case itemFile:
			return h.Has("id", "ts", "task")
		}
		return h.Has("sessionId", "version", "messages") && (h.Has("agent") || strings.HasSuffix(name, documentSuffix))
	}
	switch fileKind(name) {
	case historyFile:
		return h.Has("role", "content")
	case interfaceFile:
		return h.Has("ts", "type") && (h.Has("say") || h.Has("ask"))
	}
	return h.Has("role", "content") && isMarked(begin)
}

// isMarked reports whether the beginning of a list of messages has the marks of a task: its
// first text opens a task, and the program's description of the environment follows, or
// an answer names its model as Cline does.
func isMarked(begin []byte) bool {
	text := string(begin)
	opens := strings.Contains(text, `"<task>`) || strings.Contains(text, `"<user_message>`)
	return opens && strings.Contains(text, "<environment_details>") ||
		strings.Contains(text, `"modelInfo":{"modelId":"`) && strings.Contains(text, `"providerId":"`)
}

var errNoHistory = errors.New("its task has no " + historyFile)

// Import appends the records that the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	history := historyOf(src.Name)
	switch {
	case history == "":
		return records.Refuse(src, errNoHistory), nil
	case history != src.Name:
		var err error
		if src, err = interop.File(history); err != nil {
			return interop.Result{}, err
		}
	}
	r := reader{}
	return document.ImportRecords(ctx, log, src, formatName, r.records(src), r.read)
}

// records reads the files beside the history, then yields the history.
func (r *reader) records(src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		var rejected []*records.RecordError
		r.facts, rejected = readFacts(src.Name)
		for _, err := range rejected {
			if !yield(records.Record{}, err) {
				return
			}
		}
		for rec, err := range records.Values(src) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// sessionIDs are the id of a task, and the id if another task has it.
func sessionIDs(f *document.File) (id, fallback string) {
	folder := taskOf(f.Path)
	if folder == "" {
		return f.Session(""), ""
	}
	return documentIDs(f, folder)
}

// documentIDs are the id of a session whose name is own, and the id if another file has
// it.
func documentIDs(f *document.File, own string) (id, fallback string) {
	if isUnique(own) {
		return own, f.Folder(own)
	}
	return cmp.Or(f.Folder(own), f.Session("")), ""
}
