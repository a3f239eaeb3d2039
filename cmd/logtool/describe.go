package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/transcript"
	"github.com/convlog/convlog/projection"
)

// describe says in one line what an event holds, and gives the long text that
// belongs below it, such as a summary.
func describe(e *event.Event) (detail, text string) {
	if e.Redacted() {
		return "redacted, kept " + brief(string(e.Kept()), 100), ""
	}
	const most = 60
	var words, texts []string
	if snapshot, ok, err := event.Decode[event.Snapshot](e); ok && err == nil {
		return ofSnapshot(&snapshot), ""
	}
	arguments := transcript.Arguments(e.Data)
	if session, ok, err := event.Decode[event.Session](e); ok && err == nil {
		arguments = ofSession(&session)
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

// ofSnapshot says what a snapshot holds: of what, up to where, and how much.
func ofSnapshot(s *event.Snapshot) string {
	words := []string{s.Projection + " to " + at(s.Seq)}
	members, err := rawjson.Members(s.State)
	if err == nil && s.Projection == projection.Session().Name && len(members) > 0 {
		words = append(words, count(int64(len(members)), "projection"))
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

// ofSession is what a session says of itself, member by member.
func ofSession(s *event.Session) (all []transcript.Argument) {
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
