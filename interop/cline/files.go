package cline

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files, of Cline and of Roo Code.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"read_file":          {Does: files.Reads, Path: "path"},
	"write_to_file":      {Does: files.Writes, Path: "path absolutePath", Text: "content", Sees: seesChange},
	"replace_in_file":    {Does: files.Blocks, Path: "path absolutePath", Text: "diff", Sees: seesChange},
	"apply_diff":         {Does: files.Blocks, Path: "path", Text: "diff", Sees: seesChange},
	"apply_patch":        {Does: files.Patches, Text: "input patch"},
	"insert_content":     {Does: files.Changes, Path: "path", Text: "content", Sees: seesChange},
	"search_and_replace": {Does: files.Edits, Path: "path", Old: "search", Text: "replace", Sees: seesChange},
	"new_rule":           {Does: files.Writes, Path: "path", Text: "content", Sees: seesChange},
	"execute_command":    {Does: files.Runs, Text: "command", Folder: "cwd"},
}

// The tags of the content that a result has after a change.
const beginFinal, endFinal = "<final_file_content path=\"", "</final_file_content>"

// seesChange is the file after a change, which Cline writes into the result.
func seesChange(r *files.Result) (s files.Seen) {
	_, text, _ := strings.Cut(r.Text(), beginFinal)
	_, text, found := strings.Cut(text, "\">\n")
	end := strings.LastIndex(text, endFinal)
	if !found || end < 0 {
		return s
	}
	after := strings.TrimRight(text[:end], "\n") + "\n"
	s.After = &after
	return s
}
