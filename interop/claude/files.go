package claude

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/rawjson"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"Read":         {Does: files.Reads, Path: "file_path", Sees: seesRead},
	"Write":        {Does: files.Writes, Path: "file_path", Text: "content", Sees: seesChange},
	"Edit":         {Does: files.Edits, Path: "file_path", Old: "old_string", Text: "new_string", All: "replace_all", Sees: seesChange},
	"MultiEdit":    {Does: files.Edits, Path: "file_path", Edits: "edits", Old: "old_string", Text: "new_string", All: "replace_all", Sees: seesChange},
	"NotebookEdit": {Does: files.Changes, Path: "notebook_path", Text: "new_source"},
	"NotebookRead": {Does: files.Reads, Path: "notebook_path"},
	"Bash":         {Does: files.Runs, Text: "command", Sees: seesOutput},
}

// resultOf is the structured form of a result, which the record has beside the text.
func resultOf(r *files.Result) files.Arguments {
	v, _, err := rawjson.Lookup(r.Beside, "toolUseResult")
	if err != nil {
		return files.Arguments{}
	}
	return files.ArgumentsOf(v)
}

// seesRead is the part of the file that a read shows.
func seesRead(r *files.Result) (s files.Seen) {
	result := resultOf(r)
	file := result.Object("file")
	text, ok := file.Text("content")
	if !ok {
		return s
	}
	from := file.Number("startLine")
	if from == 1 && file.Number("numLines") == file.Number("totalLines") {
		s.After = &text
		return s
	}
	s.From, s.Lines = from, text
	return s
}

// seesChange is the file before a change.
func seesChange(r *files.Result) (s files.Seen) {
	result := resultOf(r)
	if before, ok := result.Text("originalFile originalFileContents"); ok {
		s.Before = &before
	}
	kind, _ := result.Text("type")
	s.Created = kind == "create"
	for _, h := range result.Objects("structuredPatch") {
		s.Places = append(s.Places, h.Number("oldStart")+equalLines(h.Texts("lines")))
	}
	return s
}

// equalLines is the number of lines before the first change. Claude Code writes the lines
// for people, with other spaces than in the file.
func equalLines(lines []string) (n int) {
	for n < len(lines) && strings.HasPrefix(lines[n], " ") {
		n++
	}
	return n
}

// seesOutput is the output of a command.
func seesOutput(r *files.Result) (s files.Seen) {
	result := resultOf(r)
	s.Lines, _ = result.Text("stdout") // Claude Code cuts the line ends at its end
	return s
}
