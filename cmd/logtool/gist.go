package main

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/transcript"
)

// gist says in one line what an event is: who said what, which tools were
// called, or the type with what it holds.
func gist(p *printer, e *event.Event) string {
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		detail, _ := describe(e)
		return strings.TrimSpace(clean(string(e.Type)) + "  " + brief(detail, 100))
	}
	var words []string
	if text := brief(m.Text(), 100); text != "" {
		words = append(words, text)
	}
	for i := range m.Parts {
		if word := gistOfPart(&m.Parts[i]); word != "" {
			words = append(words, word)
		}
	}
	return p.speaker(e, m.Role) + "  " + strings.Join(words, " ")
}

func gistOfPart(part *event.Part) string {
	switch part.Type {
	case event.TextPart:
		return ""
	case event.ToolCallPart, event.ServerToolCallPart:
		return "→ " + brief(part.Name+oneLine(transcript.Arguments(part.Arguments)), 80)
	case event.ToolResultPart, event.ServerToolResultPart:
		mark := "← "
		if part.IsError {
			mark = "← error "
		}
		var texts []string
		for i := range part.Content {
			texts = append(texts, part.Content[i].Text)
		}
		return mark + brief(strings.Join(texts, " "), 80)
	}
	return "[" + clean(string(part.Type)) + "]"
}
