package sweagent

import "github.com/convlog/convlog/internal/files"

// FileTools are the tools that read or change files. A call of edit changes the file that
// is open, which its arguments do not name.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"str_replace_editor": files.TextEditor(nil),
	"open":               {Does: files.Reads, Path: "path"},
	"create":             {Does: files.Changes, Path: "filename path"},
	"edit":               {Does: files.Acts, Text: "replace replacement_text"},
	"insert":             {Does: files.Acts, Text: "text"},
	"bash":               {Does: files.Runs, Text: "command"},
}
