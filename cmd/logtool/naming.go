package main

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// naming is what a session can be called by, as far as its own events were heard.
type naming struct {
	title string // that it was given last
	said  string // the beginning of the first thing that its user, or something else outside, said
}

// called is the title, or else what was said first.
func (n *naming) called() string {
	return cmp.Or(n.title, n.said)
}

// hear takes in the next event of the session.
func (n *naming) hear(e *event.Event) {
	n.title = cmp.Or(titleOf(e), n.title)
	if n.said == "" {
		n.said = saidBy(e)
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
func saidBy(e *event.Event) string {
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
const glanced = 32

// glance hears the ends of a session: its newest events for a title, and, where
// they give none, its first ones. It leaves off at what cannot be read.
func glance(ctx context.Context, log *eventlog.Log, session string) (n naming) {
	heard, spilled := 0, false
	for e, err := range log.Read(ctx, session, eventlog.Last(glanced).Own().Bare()) {
		if err != nil {
			break
		}
		n.hear(&e)
		heard++
		_, _, away := e.Spilled()
		spilled = spilled || away
	}
	if n.title != "" || heard < glanced && !spilled {
		return n
	}
	n.said, heard = "", 0
	for e, err := range log.Read(ctx, session, eventlog.All().Own()) {
		if err != nil || heard == glanced {
			break
		}
		n.hear(&e)
		heard++
	}
	return n
}

// glanceAll finds what sessions are called, several at a time.
func glanceAll(ctx context.Context, log *eventlog.Log, rows []*listed) error {
	return each(ctx, rows, func(row *listed) error {
		if row.tally == nil { // what was read knows better
			n := glance(ctx, log, row.ID)
			row.Title = n.called()
		}
		return nil
	})
}
