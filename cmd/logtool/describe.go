package main

import (
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/transcript"
)

// describe says in one line what an event holds, and gives the long text that
// belongs below it, such as a summary.
func describe(e *eventlog.Event) (detail, text string) {
	if e.Redacted() {
		return "redacted, kept " + brief(string(e.Kept()), 100), ""
	}
	const most = 60
	var words, texts []string
	for _, a := range transcript.Arguments(e.Data) {
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
