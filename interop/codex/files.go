package codex

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/transcript"
)

// FileTools are the tools that read or change files.
func (Format) FileTools() files.Tools { return fileTools }

var fileTools = files.Tools{
	"apply_patch":    {Does: files.Patches, Text: "input patch"},
	"exec_command":   {Does: files.Runs, Text: "cmd command", Folder: "workdir", Sees: seesOutput},
	"shell":          {Does: files.Runs, Text: "command", Folder: "workdir", Sees: seesOutput},
	"shell_command":  {Does: files.Runs, Text: "command", Folder: "workdir", Sees: seesOutput},
	"container.exec": {Does: files.Runs, Text: "command cmd", Folder: "workdir", Sees: seesOutput},
	"local_shell":    {Does: files.Runs, Text: "command", Folder: "working_directory", Sees: seesOutput},
	"write_stdin":    {Does: files.Acts, Text: "chars"},
	"exec":           {Does: files.Acts, Text: "code"},
	"view_image":     {Does: files.Reads, Path: "path"},
	"read_file":      {Does: files.Reads, Path: "file_path"},
}

// cutOutput is the mark of an output whose middle Codex left out.
var cutOutput = regexp.MustCompile(`…[0-9]+ (tokens|chars) truncated…|\[\.\.\. omitted [0-9]+ of [0-9]+ lines`)

// seesOutput is the output of a command, without the header that Codex writes before it.
func seesOutput(r *files.Result) (s files.Seen) {
	text := r.Text()
	if strings.HasPrefix(text, "{") {
		var result struct {
			Output string `json:"output"`
		}
		if json.Unmarshal([]byte(text), &result) != nil {
			return s
		}
		text = result.Output
	} else {
		_, text = transcript.CutHeader(text)
	}
	if text != "" && !cutOutput.MatchString(text) {
		s.After = &text
	}
	return s
}
