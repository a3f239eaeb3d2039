package pi

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"read":  {Does: files.Reads, Path: "path file_path", Sees: seesRead},
	"write": {Does: files.Writes, Path: "path file_path", Text: "content"},
	"edit":  {Does: files.Edits, Path: "path file_path", Edits: "edits", Old: "oldText old_string", Text: "newText new_string"},
	"bash":  {Does: files.Runs, Text: "command", Sees: seesOutput},
}

// seesRead is the part of the file that a read shows. pi ends a part with a line in brackets.
func seesRead(r *files.Result) (s files.Seen) {
	text := r.Text()
	if len(r.Content) != 1 || text == "" {
		return s
	}
	if from := r.Call.Number("offset"); from > 0 || r.Call.Has("limit") || isCut(text) {
		s.From = max(from, 1)
		s.Lines, _, _ = strings.Cut(text, "\n\n[")
		return s
	}
	s.After = &text
	return s
}

// isCut reports whether a text ends with a line that says how to read more.
func isCut(text string) bool {
	at := strings.LastIndex(text, "\n\n[")
	return at >= 0 && strings.HasSuffix(text, "]") && strings.Contains(text[at:], "lines")
}

// seesOutput is the output of a command.
func seesOutput(r *files.Result) (s files.Seen) {
	if text := r.Text(); !isCut(text) {
		s.Lines = text
	}
	return s
}
