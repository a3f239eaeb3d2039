package inspect

import "github.com/convlog/convlog/internal/files"

// FileTools are the tools of Inspect that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"text_editor":                 files.TextEditor(),
	"str_replace_based_edit_tool": files.TextEditor(),
	"bash":                        {Does: files.Runs, Text: "cmd command"},
	"bash_session":                {Does: files.Acts, Text: "input"},
	"python":                      {Does: files.Acts, Text: "code"},
}
