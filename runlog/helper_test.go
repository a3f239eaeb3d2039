package runlog_test

import (
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
)

func asks(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func says(parts ...event.Part) event.Message {
	return event.Message{Role: event.Assistant, Parts: parts}
}

// do appends payloads, each by itself, and gives the id of the first event.
func do(g *garden.Garden, payloads ...event.Payload) (id ulid.ULID) {
	g.T.Helper()
	for _, p := range payloads {
		e := event.New(p)
		if g.Append("s", e); id.IsZero() {
			id = e.ID
		}
	}
	return id
}

// add appends payloads, unchecked as an import would.
func add(g *garden.Garden, name string, payloads ...event.Payload) {
	g.T.Helper()
	for _, p := range payloads {
		_, err := g.Log.Append(garden.Bg, name, eventlog.Any().Lenient(), event.New(p))
		g.Allow(err)
	}
}
