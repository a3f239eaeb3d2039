package document

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// ShellTool is the name of the tool whose calls are commands in a text.
const ShellTool = "bash"

// Shell pairs commands that stand in texts with what they print, which the next
// message of the user says.
type Shell struct {
	number int
	open   string // the call without a result; empty if there is none
}

// Runs makes an answer a call of a command, behind what else is said. What was
// said as it stands is kept in the message's extra.
func (s *Shell) Runs(m *event.Message, said, command string) {
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
	if said = strings.TrimSpace(said); said != "" {
		m.Parts = []event.Part{event.Text(said)}
	}
	arguments, _ := json.Marshal(map[string]string{"command": command})
	m.Parts = append(m.Parts, event.ToolCall(s.open, ShellTool, jsontext.Value(arguments)))
}

// Open reports whether a command has not printed anything yet.
func (s *Shell) Open() bool { return s.open != "" }

// Prints makes a message the result of the newest command.
func (s *Shell) Prints(m *event.Message) {
	m.Role = event.Tool
	m.Parts = []event.Part{event.ToolResult(s.open, ShellTool, m.Parts...)}
	s.open = ""
}

// Passes forgets the newest command, which something else follows.
func (s *Shell) Passes() { s.open = "" }
