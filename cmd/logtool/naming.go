package main

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// naming is what a session can be called by, as far as its own events were heard.
type sessionName struct {
	title string // that it was given last
	text  string // the beginning of the first thing that its user, or something else outside, said
}

// called is the title, or else what was said first.
func (n *sessionName) name() string {
	return cmp.Or(n.title, n.text)
}

// hear takes in the next event of the session.
func (n *sessionName) add(e *event.Event) {
	n.title = cmp.Or(titleOf(e), n.title)
	if n.text == "" {
		n.text = textOf(e)
	}
}

// titleOf is the title that an event gives its session; empty if it gives none.
func titleOf(e *event.Event) string {
	s, ok, err := event.Decode[event.Session](e)
	if !ok || err != nil {
		return ""
	}
	return brief(s.Title, 60)
}

// saidBy is the beginning of what an event says to the session from outside.
func textOf(e *event.Event) string {
	if m, ok, err := event.Decode[event.Message](e); ok && err == nil && m.Role == event.User && !e.IsContext() {
		return brief(m.Text(), 60)
	}
	var text string
	if x, ok, err := event.Decode[event.External](e); ok && err == nil && json.Unmarshal(x.Value, &text) == nil {
		return brief(text, 60)
	}
	return ""
}

// glanced is how many events at each end of a session a glance looks at.
const nameEvents = 32

// glance hears the ends of a session: its newest events for a title, and, where
// they give none, its first ones. It leaves off at what cannot be read.
func readName(ctx context.Context, log *eventlog.Log, session string) (n sessionName) {
	heard, spilled := 0, false
	for e, err := range log.Read(ctx, session, eventlog.Last(nameEvents).Own().Bare()) {
		if err != nil {
			break
		}
		n.add(&e)
		heard++
		_, _, away := e.Spilled()
		spilled = spilled || away
	}
	if n.title != "" || heard < nameEvents && !spilled {
		return n
	}
	n.text, heard = "", 0
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil || heard == nameEvents {
			break
		}
		n.add(&e)
		heard++
	}
	return n
}

// glanceAll finds what sessions are called, several at a time.
func readNames(ctx context.Context, log *eventlog.Log, rows []*sessionRow) error {
	return each(ctx, rows, func(row *sessionRow) error {
		if row.tally == nil { // what was read knows better
			n := readName(ctx, log, row.ID)
			row.Title = n.name()
		}
		return nil
	})
}
