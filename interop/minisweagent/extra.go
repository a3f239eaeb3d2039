package minisweagent

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/parts"
)

// extra holds the parsed extra of a message.
type extra struct {
	at       time.Time
	cost     event.Cost
	usage    event.Usage
	commands []string
	// code is the exit code of the command, as JSON; nil if the message has none.
	code jsontext.Value
}

func extraOf(v jsontext.Value) (x extra) {
	var fields struct {
		Timestamp float64 `json:"timestamp"`
		Cost      float64 `json:"cost"`
		Actions   []struct {
			Command string `json:"command"`
		} `json:"actions"`
		Code     jsontext.Value `json:"returncode"`
		Response struct {
			Usage jsontext.Value `json:"usage"`
		} `json:"response"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &fields) != nil {
		return x
	}
	if fields.Timestamp > 0 && fields.Timestamp < 1e11 {
		whole, part := math.Modf(fields.Timestamp)
		x.at = time.Unix(int64(whole), int64(part*1e6)*1e3).UTC()
	}
	x.cost, _ = event.USD(max(0, fields.Cost)) // zero for an invalid amount
	if len(fields.Response.Usage) > 0 {
		x.usage, _ = parts.Usage(fields.Response.Usage)
	}
	x.code = fields.Code
	for _, a := range fields.Actions {
		x.commands = append(x.commands, a.Command)
	}
	return x
}

// block matches a code block that the agent runs.
var block = regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)\\s*\n(.*?)\n```")

// commandIn returns the command of an answer, and the text around it. The agent runs
// an answer with exactly one command.
func commandIn(text string, commands []string) (rest, command string, ok bool) {
	found := block.FindAllStringSubmatchIndex(text, 2)
	switch {
	case len(found) == 1:
		at := found[0]
		before, after := strings.TrimSpace(text[:at[0]]), strings.TrimSpace(text[at[1]:])
		return strings.TrimSpace(before + "\n\n" + after), text[at[2]:at[3]], true
	case len(commands) == 1:
		return text, commands[0], true
	}
	return "", "", false
}

// returnCode matches the exit code at the beginning of a result.
var returnCode = regexp.MustCompile(`^\s*<returncode>(-?\d+)</returncode>`)

// markFailure marks the result of a command that failed.
func markFailure(m *event.Message, x extra) {
	if m.Role != event.Tool || len(m.Parts) != 1 || m.Parts[0].Type != event.ToolResultPart {
		return
	}
	p := &m.Parts[0]
	code := string(x.code)
	if found := returnCode.FindStringSubmatch(textOf(p.Content)); code == "" && found != nil {
		code = found[1]
	}
	p.IsError = p.IsError || code != "" && code != "0" && code != "null"
}

func textOf(content []event.Part) string {
	if len(content) == 0 {
		return ""
	}
	return content[0].Text
}
