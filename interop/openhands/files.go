package openhands

import "github.com/convlog/convlog/internal/files"

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"str_replace_editor":   files.TextEditor(),
	"file_editor":          files.TextEditor(),
	"execute_bash":         {Does: files.Runs, Text: "command"},
	"terminal":             {Does: files.Runs, Text: "command"},
	"execute_ipython_cell": {Does: files.Acts, Text: "code"},
	"edit_file":            {Does: files.Changes, Path: "path", Text: "content"},
}
