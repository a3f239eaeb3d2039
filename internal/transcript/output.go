package transcript

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// CutHeader splits the text of a result at the line "Output:": into the header that Codex
// writes, and the output of the command. The header is empty if the text does not begin with
// one.
func CutHeader(text string) (header, output string) {
	begin := text
	if _, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "Command: ") && strings.HasPrefix(rest, "Chunk ID: ") {
		begin = rest // of early versions of exec_command
	}
	for _, mark := range []string{"Chunk ID: ", "Wall time: ", "Exit code: ", "Process exited with code ", "Script completed\n", "Script failed\n"} {
		if !strings.HasPrefix(begin, mark) {
			continue
		}
		if header, output, ok := strings.Cut(text, "\nOutput:"); ok {
			return header, strings.TrimPrefix(output, "\n")
		}
	}
	return "", text
}

// ErrorText is the text of a failed result: the output of the command without the lines and
// the JSON that a program writes around it. If there is no output, it is the exit code.
func ErrorText(p *event.Part) string {
	var texts []string
	for i := range p.Content {
		texts = append(texts, p.Content[i].Text)
	}
	text := strings.Join(texts, "\n")
	header, output := CutHeader(text)
	output = outputMember(output)
	if strings.TrimSpace(output) != "" {
		return output
	}
	for line := range strings.Lines(header) {
		if strings.HasPrefix(line, "Process exited with code ") || strings.HasPrefix(line, "Exit code: ") {
			return strings.TrimSpace(line)
		}
	}
	return text
}

// outputMember is the member output of a JSON object, if it is a text; otherwise the text.
func outputMember(text string) string {
	var result struct {
		Output *string `json:"output"`
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &result) == nil && result.Output != nil {
		return *result.Output
	}
	return text
}
