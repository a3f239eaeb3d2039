package gemini

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"read_file":         {Does: files.Reads, Path: "file_path absolute_path path", Sees: seesRead},
	"read_many_files":   {Does: files.Reads, Path: "paths include"},
	"write_file":        {Does: files.Writes, Path: "file_path", Text: "content", Sees: seesChange},
	"replace":           {Does: files.Edits, Path: "file_path", Old: "old_string", Text: "new_string", All: "allow_multiple expected_replacements", Sees: seesChange},
	"run_shell_command": {Does: files.Runs, Text: "command", Folder: "dir_path directory"},
}

// seesRead is the content of the file, if the read has all of it.
func seesRead(r *files.Result) (s files.Seen) {
	text := r.Text()
	for _, part := range []string{"offset", "limit", "start_line", "end_line"} {
		if r.Call.Has(part) {
			return s
		}
	}
	if text != "" && !strings.Contains(text, "content has been truncated") && !strings.HasPrefix(text, "[File content truncated") {
		s.After = &text
	}
	return s
}

// seesChange is the file before and after a change, which newer versions write for the
// display.
func seesChange(r *files.Result) (s files.Seen) {
	extra := files.ArgumentsOf(r.Extra)
	display := extra.Object("resultDisplay")
	if after, ok := display.Text("newContent"); ok {
		s.After = &after
	}
	if before, ok := display.Text("originalContent"); ok {
		s.Before = &before
	}
	s.Created = display.True("isNewFile") || strings.HasPrefix(r.Text(), "Successfully created and wrote to new file")
	return s
}
