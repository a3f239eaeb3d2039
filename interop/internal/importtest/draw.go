package importtest

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Path draws a line for each event of the active path, with the arguments and the
// results of calls.
func Path(t TB, log *eventlog.Log, session string) (lines []string) {
	t.Helper()
	for _, e := range ActivePath(t, log, session) {
		lines = append(lines, Draw(t, &e))
	}
	return lines
}

// Outline draws a line for each event of the active path, without arguments and
// results.
func Outline(t TB, log *eventlog.Log, session string) []string {
	t.Helper()
	return Outlines(t, ActivePath(t, log, session))
}

// Outlines draws a short line for each event.
func Outlines(t TB, all []event.Event) (lines []string) {
	t.Helper()
	for i := range all {
		lines = append(lines, outline(t, &all[i]))
	}
	return lines
}

func outline(t TB, e *event.Event) string {
	t.Helper()
	if c, ok, err := event.Decode[event.ContextEntry](e); ok && err == nil {
		return "context " + c.Kind + ": " + c.Parts[0].Text
	}
	return draw(t, e, outlinePart)
}

// Draw draws a line for an event.
func Draw(t TB, e *event.Event) string {
	t.Helper()
	if s, ok, err := event.Decode[event.StepCompletion](e); ok && err == nil {
		return fmt.Sprintf("step_completed %d+%d %s", s.Usage.InputTokens, s.Usage.OutputTokens, e.Cost)
	}
	return draw(t, e, drawPart)
}

func draw(t TB, e *event.Event, part func(*event.Part) string) string {
	t.Helper()
	if h, ok, err := event.Decode[event.HeadMove](e); ok && err == nil {
		return fmt.Sprintf("head_moved to %d", h.To)
	}
	m, ok, err := event.Decode[event.Message](e)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return string(e.Type)
	}
	return drawMessage(&m, part)
}

// MessageOutline draws a short line for a message.
func MessageOutline(m *event.Message) string { return drawMessage(m, outlinePart) }

func drawMessage(m *event.Message, part func(*event.Part) string) string {
	line := string(m.Role)
	for i := range m.Parts {
		line += " " + part(&m.Parts[i])
	}
	return line
}

func drawPart(p *event.Part) string {
	switch p.Type {
	case event.ToolCallPart:
		return fmt.Sprintf("%s %s", outlinePart(p), p.Arguments)
	case event.ToolResultPart:
		failed := ""
		if p.IsError {
			failed = "failed "
		}
		return failed + outlinePart(p) + ": " + event.Message{Parts: p.Content}.Text()
	}
	return outlinePart(p)
}

func outlinePart(p *event.Part) string {
	switch p.Type {
	case event.TextPart:
		text, _, _ := strings.Cut(strings.TrimSpace(p.Text), " ")
		return text + "…"
	case event.ToolCallPart:
		return "calls " + p.Name
	case event.ToolResultPart:
		return "result of " + p.Name
	}
	return string(p.Type)
}
