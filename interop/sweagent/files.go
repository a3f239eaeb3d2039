package sweagent

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/files"
)

// FileTools are the tools that read or change files. The arguments of most of them do not name
// the file: it is the open one, which the result names.
func (Format) FileTools() files.Tools { return fileTools }

var editTool = files.Tool{Pick: formOfEdit, Each: files.Tools{
	"lines":   {Does: files.Replaces, Line: "start_line", End: "end_line", Text: "replacement_text", Sees: seesWindow},
	"search":  {Does: files.Edits, Old: "search", Text: "replace", All: "replace-all replace_all", Sees: seesWindow},
	"cursors": {Does: files.Changes, Text: "replacement_text text", Sees: seesWindow},
}}

var fileTools = files.Tools{
	"str_replace_editor":          files.TextEditor(),
	"str_replace_based_edit_tool": files.TextEditor(),
	"open":                        {Does: files.Reads, Path: "path", Sees: seesWindow},
	"goto":                        {Does: files.Reads, Sees: seesWindow},
	"scroll_up":                   {Does: files.Reads, Sees: seesWindow},
	"scroll_down":                 {Does: files.Reads, Sees: seesWindow},
	"create":                      {Does: files.Changes, Path: "filename path", Sees: seesWindow},
	"edit":                        editTool,
	"insert": {Pick: formOfInsertion, Each: files.Tools{
		"line": {Does: files.Inserts, Text: "text", Line: "line", Sees: seesWindow},
		"end":  {Does: files.Changes, Text: "text", Sees: seesWindow},
	}},
	"bash": {Pick: toolOfCommand, Each: files.Tools{
		"shell":       {Does: files.Runs, Text: "command", Sees: seesFolder},
		"open":        {Does: files.Reads, Path: "path", Sees: seesWindow},
		"goto":        {Does: files.Reads, Sees: seesWindow},
		"scroll_up":   {Does: files.Reads, Sees: seesWindow},
		"scroll_down": {Does: files.Reads, Sees: seesWindow},
		"create":      {Does: files.Changes, Path: "path", Sees: seesWindow},
		"edit":        editTool,
	}},
}

// formOfEdit names the form of an edit by its arguments.
func formOfEdit(args *files.Arguments) (form string, own files.Arguments) {
	switch {
	case args.Has("search"):
		return "search", *args
	case args.Has("start_line"):
		return "lines", *args
	}
	return "cursors", *args
}

// formOfInsertion names the form of an insertion: after a line, or at the end of the file.
func formOfInsertion(args *files.Arguments) (form string, own files.Arguments) {
	if args.Has("line") {
		return "line", *args
	}
	return "end", *args
}

// toolOfCommand names the tool that a command in the text of an answer calls, and makes its
// words arguments:
//
//	edit 3:5
//	the new lines
//	end_of_edit
func toolOfCommand(args *files.Arguments) (tool string, own files.Arguments) {
	command, _ := args.Text("command")
	line, text, _ := strings.Cut(strings.TrimSpace(command), "\n")
	words := strings.Fields(line)
	members := map[string]any{}
	switch {
	case len(words) > 0 && words[0] == "edit":
		text, ok := strings.CutSuffix("\n"+text, "\nend_of_edit")
		if !ok {
			break
		}
		members["replacement_text"] = strings.TrimPrefix(text, "\n")
		if len(words) > 1 {
			first, last, _ := strings.Cut(words[1], ":")
			members["start_line"], members["end_line"] = number(first), number(last)
		}
	case len(words) > 1 && text == "" && (words[0] == "open" || words[0] == "create"):
		members["path"] = strings.Trim(words[1], `"'`)
	case len(words) > 0 && text == "" && (words[0] == "goto" || words[0] == "scroll_up" || words[0] == "scroll_down"):
	default:
		return "shell", *args
	}
	v, _ := json.Marshal(members)
	return words[0], files.ArgumentsOf(v)
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // 0 is no line
	return n
}

// seesFolder is the working folder after a command.
func seesFolder(r *files.Result) (s files.Seen) {
	s.Folder = stateOf(r.Text(), "Current directory")
	return s
}

// seesWindow is what a result shows of the open file: some of its lines, with their numbers.
func seesWindow(r *files.Result) (s files.Seen) {
	text := r.Text()
	s.Failed = refused(text)
	name, window, total := windowOf(text)
	if !s.Failed {
		shown := files.Numbered(window, ":")
		s.Lines, s.From = shown.Lines, shown.From
		if shown.From == 1 && strings.Count(shown.Lines, "\n") == total {
			s.After = &shown.Lines
		}
	}
	if s.Path = stateOf(text, "Open file"); s.Path == "" || s.Path == "n/a" {
		s.Path = name
	}
	s.Folder = stateOf(text, "Current directory")
	return s
}

// windowOf returns the name of the open file, the shown lines, and the number of all lines.
func windowOf(text string) (name, window string, total int) {
	_, rest, ok := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "[File: ") // some come from a terminal
	head, window, more := strings.Cut(rest, " lines total)]\n")
	if !ok || !more {
		return "", "", 0
	}
	i := strings.LastIndex(head, " (")
	if i < 0 {
		return "", "", 0
	}
	for _, cursor := range []string{"<<<<< START CURSOR >>>>>\n", "<<<<< END CURSOR >>>>>\n"} {
		window = strings.ReplaceAll(window, cursor, "")
	}
	return head[:i], window, number(head[i+2:])
}

// stateOf returns a value of the state that SWE-agent writes at the end of a result.
func stateOf(text, name string) string {
	mark := "\n(" + name + ": "
	i := strings.LastIndex("\n"+text, mark)
	if i < 0 {
		return ""
	}
	value, _, _ := strings.Cut(text[i+len(mark)-1:], "\n")
	value, _ = strings.CutSuffix(value, ")")
	return value
}
