package document

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// ShellTool is the tool name of shell commands in the text of a message.
const ShellTool = "bash"

// Shell turns shell commands in the text of answers into tool calls, and the next
// message of the user into the result.
type Shell struct {
	number int
	open   string // the id of the call without a result; empty if there is none
}

// Call makes an answer a call of a command, after the text that comes before the
// command. The whole text of the answer stays in the extra of the message.
func (s *Shell) Call(m *event.Message, text, command string) {
	s.number++
	s.open = fmt.Sprintf("command_%d", s.number)
	content, _ := json.Marshal(m.Text())
	extra, err := parts.Open(m.Extra)
	if err != nil {
		extra = parts.Members{}
	}
	extra.Put("content", content)
	m.Extra = extra.Rest()
	m.Parts = nil
	if text = strings.TrimSpace(text); text != "" {
		m.Parts = []event.Part{event.Text(text)}
	}
	arguments, _ := json.Marshal(map[string]string{"command": command})
	m.Parts = append(m.Parts, event.ToolCall(s.open, ShellTool, jsontext.Value(arguments)))
}

// Open reports whether the newest command has no result yet.
func (s *Shell) Open() bool { return s.open != "" }

// Result makes a message the result of the newest command.
func (s *Shell) Result(m *event.Message) {
	m.Role = event.Tool
	m.Parts = []event.Part{event.ToolResult(s.open, ShellTool, m.Parts...)}
	s.open = ""
}

// Forget forgets the newest command: no result follows.
func (s *Shell) Forget() { s.open = "" }
