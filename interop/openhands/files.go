package openhands

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"str_replace_editor":   files.TextEditor(seesEditor),
	"file_editor":          files.TextEditor(seesEditor),
	"execute_bash":         {Does: files.Runs, Text: "command"},
	"terminal":             {Does: files.Runs, Text: "command"},
	"execute_ipython_cell": {Does: files.Acts, Text: "code"},
	"edit_file":            {Does: files.Changes, Path: "path", Text: "content"},
}

// seesEditor is what the editor shows: lines with numbers, or the error of an edit.
func seesEditor(r *files.Result) (s files.Seen) {
	text := r.Text()
	if way, _ := r.Call.Text("command"); way == "view" && strings.HasPrefix(text, "Here's the result of running `cat -n` on") {
		return files.Numbered(text, "\t")
	}
	s.Failed = strings.HasPrefix(text, "ERROR:")
	return s
}
