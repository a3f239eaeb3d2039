package sweagent

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/files"
)

// refusals are the beginnings of results of edits that changed nothing.
var refusals = []string{
	"Your proposed edit has introduced new syntax error(s)", "Your edit was not applied", "Your search and replace strings are the same",
	"No file open", "Text not found", "Usage: ", "Invalid ", "Error: ",
}

// refused reports whether the result of an edit says that nothing was changed.
func refused(text string) bool {
	text = strings.TrimSpace(strings.TrimPrefix(text, "OBSERVATION:\n"))
	for _, begin := range refusals {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// markRefused marks the results of edits that changed nothing as errors. calls are the open
// calls.
func markRefused(m *event.Message, calls []event.Part) {
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, c := range calls {
			if p.Type == event.ToolResultPart && p.CallID == c.CallID && refusedCall(&c, event.Message{Parts: p.Content}.Text()) {
				p.IsError = true
			}
		}
	}
}

// refusedCall reports whether a call is an edit, and its result says that nothing was changed.
func refusedCall(call *event.Part, text string) bool {
	tool := call.Name
	if tool == "bash" {
		args := files.ArgumentsOf(call.Arguments)
		tool, _ = toolOfCommand(&args)
	}
	switch tool {
	case "edit", "insert", "create", "open":
		return refused(text)
	case "str_replace_editor", "str_replace_based_edit_tool":
		return files.EditorFailed(text)
	}
	return false
}
