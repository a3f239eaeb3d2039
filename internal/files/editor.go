package files

import "strings"

// TextEditor is the tool of Anthropic's text editor, which other programs have too.
func TextEditor() Tool {
	return Tool{Pick: func(args *Arguments) (string, Arguments) {
		command, _ := args.Text("command")
		return command, *args
	}, Each: Tools{
		"view":        {Does: Reads, Path: "path", Sees: seesEditor},
		"create":      {Does: Writes, Path: "path", Text: "file_text", Sees: seesEditor},
		"str_replace": {Does: Edits, Path: "path", Old: "old_str", Text: "new_str", Sees: seesEditor},
		"insert":      {Does: Inserts, Path: "path", Line: "insert_line", Text: "new_str insert_text", Sees: seesEditor},
		"undo_edit":   {Does: Changes, Path: "path", Sees: seesEditor},
	}}
}

// editorErrors are the beginnings of results of commands that did nothing.
var editorErrors = []string{
	"ERROR:", "Error:", "No replacement was performed", "No edit history found", "File already exists at",
	"Invalid `", "Parameter `", "The path ", "The `",
}

// EditorFailed reports whether the result of a text editor is an error.
func EditorFailed(text string) bool {
	text = strings.TrimSpace(strings.TrimPrefix(text, "OBSERVATION:\n"))
	for _, begin := range editorErrors {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// seesEditor is what the editor shows: lines with numbers, or the error of an edit.
func seesEditor(r *Result) (s Seen) {
	text := strings.TrimPrefix(r.Text(), "OBSERVATION:\n")
	if way, _ := r.Call.Text("command"); way == "view" && strings.HasPrefix(text, "Here's the result of running `cat -n` on") {
		return Numbered(text, "\t")
	}
	s.Failed = EditorFailed(text)
	return s
}
