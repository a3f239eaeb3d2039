package opencode

import (
	"strings"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"read":        {Does: files.Reads, Path: "filePath", Sees: seesRead},
	"write":       {Does: files.Writes, Path: "filePath", Text: "content", Sees: seesWrite},
	"edit":        {Does: files.Edits, Path: "filePath", Old: "oldString", Text: "newString", All: "replaceAll", Sees: seesEdit},
	"multiedit":   {Does: files.Edits, Path: "filePath", Edits: "edits", Old: "oldString", Text: "newString", All: "replaceAll", Sees: seesEdit},
	"patch":       {Does: files.Patches, Text: "patchText"},
	"apply_patch": {Does: files.Patches, Text: "patchText"},
	"bash":        {Does: files.Runs, Text: "command", Folder: "workdir", Sees: seesOutput},
}

// metadataOf are the facts of a result that OpenCode has beside the text.
func metadataOf(r *files.Result) files.Arguments {
	extra := files.ArgumentsOf(r.Extra)
	state := extra.Object("state")
	return state.Object("metadata")
}

// seesRead is the part of the file that a read shows: lines with numbers.
func seesRead(r *files.Result) files.Seen {
	text := r.Text()
	if _, content, ok := strings.Cut(text, "<content>\n"); ok {
		return files.Numbered(content, ": ")
	}
	if _, content, ok := strings.Cut(text, "<file>\n"); ok {
		return files.Numbered(content, "| ")
	}
	return files.Seen{}
}

// seesWrite tells whether the file was there before.
func seesWrite(r *files.Result) (s files.Seen) {
	metadata := metadataOf(r)
	s.Created = metadata.False("exists")
	return s
}

// seesEdit is the file before and after an edit.
func seesEdit(r *files.Result) (s files.Seen) {
	metadata := metadataOf(r)
	difference := metadata.Object("filediff")
	if before, ok := difference.Text("before"); ok {
		s.Before = &before
	}
	if after, ok := difference.Text("after"); ok {
		s.After = &after
	}
	return s
}

// seesOutput is the output of a command.
func seesOutput(r *files.Result) (s files.Seen) {
	metadata := metadataOf(r)
	if out, ok := metadata.Text("output"); ok && !metadata.True("truncated") {
		s.Lines = out
	}
	return s
}
