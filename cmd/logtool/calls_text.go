package main

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/transcript"
)

// subjects are the arguments that tell most about a call: a path or a command. They come first,
// without their names.
var subjects = []string{"file_path", "filePath", "absolute_path", "notebook_path", "path", "command", "cmd", "code"}

// oneLineArguments are the arguments of a call on one line: the subject, then the others with
// their names. Flags that are off, and empty arguments, are left out.
func oneLineArguments(v jsontext.Value) string {
	var first, rest []string
	for _, a := range transcript.Arguments(v) {
		switch {
		case a.Text == "false" || a.Text == "null" || strings.TrimSpace(a.Text) == "":
		case slices.Contains(subjects, a.Name):
			first = append(first, a.Text)
		default:
			rest = append(rest, a.Label()+a.Text)
		}
	}
	return strings.Join(append(first, rest...), " · ")
}
