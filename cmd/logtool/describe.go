package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// describe describes an event in one line. Long text, for example a summary, is
// returned apart: it is printed below the line.
func describe(e *event.Event) (detail, text string) {
	if e.Redacted() {
		return "redacted, kept " + brief(string(e.Kept()), 100), ""
	}
	if detail, ok := describeRun(e); ok {
		return detail, ""
	}
	const most = 60
	var words, texts []string
	if snapshot, ok, err := event.Decode[event.Snapshot](e); ok && err == nil {
		return snapshotDetail(&snapshot), ""
	}
	arguments := transcript.Arguments(e.Data)
	if session, ok, err := event.Decode[event.Session](e); ok && err == nil {
		arguments = sessionFacts(&session)
	}
	for _, a := range arguments {
		switch {
		case a.Name == "extra", a.Name == "hash", a.Name == "event_id":
		case strings.Contains(a.Text, "\n") || utf8.RuneCountInString(a.Text) > 4*most:
			texts = append(texts, a.Label()+a.Text)
		default:
			words = append(words, clean(a.Label())+brief(a.Text, 2*most))
		}
	}
	return brief(strings.Join(words, ", "), 4*most), strings.Join(texts, "\n")
}

// snapshotDetail is the projection, the last event and the size of a snapshot.
func snapshotDetail(s *event.Snapshot) string {
	words := []string{s.Projection + " to " + at(s.Seq)}
	members, err := rawjson.Members(s.State)
	if err == nil && s.Projection == projection.Session().Name && len(members) > 0 {
		words = append(words, count(len(members), "projection"))
	}
	switch {
	case s.IsMark():
		words = append(words, "a mark without a state")
	case len(s.State) > 0:
		words = append(words, size(int64(len(s.State))))
	default:
		words = append(words, size(s.Body.Bytes)+" in a blob")
	}
	for _, word := range []string{s.Trigger, s.Reason} {
		if word != "" {
			words = append(words, brief(word, 60))
		}
	}
	return clean(strings.Join(words, ", "))
}

// sessionFacts are the members of a session event as arguments.
func sessionFacts(s *event.Session) (all []transcript.Argument) {
	add := func(name, text string) {
		if text != "" {
			all = append(all, transcript.Argument{Name: name, Text: text})
		}
	}
	add("title", s.Title)
	add("agent", s.Agent)
	add("cwd", s.CWD)
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if text := s.Labels[name]; text != nil {
			add(name, *text)
		} else {
			add(name, "removed")
		}
	}
	add("source", strings.Join(strings.Fields(s.Source.Format+" "+s.Source.Version+" "+s.Source.Path), " "))
	if p := s.Parent; p.SessionID != "" {
		text := p.SessionID
		if p.Seq > 0 {
			text += " " + at(p.Seq)
		}
		if p.CallID != "" {
			text += fmt.Sprintf(" call %q", p.CallID)
		}
		add("run of", text)
	}
	return all
}

// gist is one line about an event: the speaker, the text and the tool calls of a
// message, else the type and a description.
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
