package main

import (
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/eventlog"
)

// describe says in one line what an event holds, and gives the long text that
// belongs below it, such as a summary.
func describe(e *eventlog.Event) (detail, text string) {
	if e.Redacted() {
		return "redacted, kept " + brief(string(e.Kept()), 100), ""
	}
	const most = 60
	var words, texts []string
	for _, a := range argumentsOf(e.Data) {
		switch {
		case a.name == "extra", a.name == "hash", a.name == "event_id":
		case strings.Contains(a.text, "\n") || utf8.RuneCountInString(a.text) > 4*most:
			texts = append(texts, a.label()+a.text)
		default:
			words = append(words, clean(a.label())+brief(a.text, 2*most))
		}
	}
	return brief(strings.Join(words, ", "), 4*most), strings.Join(texts, "\n")
}
