package codex

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/transcript"
)

// exitCode is the exit code of the command in a result; 0 if the result tells none. Codex
// writes it into the text: as metadata.exit_code of a JSON object, or in a header that ends
// with the line "Output:".
func exitCode(p *event.Part) int {
	if len(p.Content) == 0 || p.Content[0].Type != event.TextPart {
		return 0
	}
	text := p.Content[0].Text
	if strings.HasPrefix(text, "{") {
		return exitCodeOfObject(text)
	}
	header, _ := transcript.CutHeader(text)
	for line := range strings.Lines(header) {
		for _, mark := range []string{"Process exited with code ", "Exit code: "} {
			if code, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				n, _ := strconv.Atoi(code) // a text that is no number is no exit code
				return n
			}
		}
	}
	return 0
}

func exitCodeOfObject(text string) int {
	var result struct {
		Output   jsontext.Value `json:"output"`
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	if json.Unmarshal([]byte(text), &result) != nil {
		return 0
	}
	if _, ok := rawjson.Text(result.Output); !ok {
		return 0 // JSON that the command printed
	}
	return result.Metadata.ExitCode
}

// failures are the commands that failed, by the item_completed records of a file. A record
// comes before the output of its call.
type failures struct {
	calls map[string]bool // by call id
	// script says that a command of the script that runs failed. Its record does not name
	// the call.
	script bool
}

// note notes a record.
func (f *failures) note(l *line) {
	if l.kind == itemKind && kindOf(l.payload) == "custom_tool_call" {
		f.script = false
	}
	if !l.isEvent("item_completed") {
		return
	}
	var item struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		Status   string `json:"status"`
		ExitCode int    `json:"exit_code"`
	}
	v := l.members.Peek("item")
	if v.Kind() != '{' || json.Unmarshal(v, &item) != nil || item.Type != "CommandExecution" || item.Status != "failed" && item.ExitCode == 0 {
		return
	}
	if strings.HasPrefix(item.ID, "exec-") {
		f.script = true
		return
	}
	if f.calls == nil {
		f.calls = map[string]bool{}
	}
	f.calls[item.ID] = true
}

// mark marks the results of commands that failed.
func (f *failures) mark(m *event.Message) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == event.ToolResultPart && (f.calls[p.CallID] || f.script && p.Name == scriptTool) {
			p.IsError, f.script = true, false
		}
	}
}

// scriptTool is the tool that runs a script with commands.
const scriptTool = "exec"
