package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// describe describes an event in one line. A short text comes after the first word, before
// ids. The note has what is printed below the line: a longer text, and parts.
func describe(e *event.Event) (line string, below transcript.Note) {
	const most = 120
	n := transcript.Describe(e)
	words := n.Words
	if !strings.Contains(n.Text, "\n") && utf8.RuneCountInString(n.Text) <= most {
		words, n.Text = slices.Insert(words, min(1, len(words)), n.Text), ""
	}
	var all []string
	for _, word := range words {
		if word != "" {
			all = append(all, brief(word, most))
		}
	}
	return brief(strings.Join(all, ", "), 2*most), n
}

// gist is one line about an event: the speaker, the text and the tool calls of a
// message, else the type and a description.
func gist(p *printer, e *event.Event) string {
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil {
		detail, n := describe(e)
		detail = strings.TrimSpace(detail + " " + n.Text)
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
