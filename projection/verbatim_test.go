package projection_test

import (
	"math"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// What is rendered into a request must have the same bytes whether or not it
// comes from a snapshot, or prompt caches are lost: escapes in strings stay as
// they were written.
func TestSnapshotsKeepEscapes(t *testing.T) {
	const arguments = `{"a":"\u003cb\u003e caf\u00e9 \/","\u0062":1.0}`
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			g := &garden{t: t, log: log}
			g.append("s", g.made(eventlog.NewMessage(eventlog.Message{Role: eventlog.Assistant,
				Parts: []eventlog.Part{eventlog.ToolCall("c1", "run", []byte(arguments))}})))
			v, err := projection.Resume(bg, log, "s", projection.Session)
			g.allow(err)
			_, _, err = v.Snapshot(bg, projection.Request{Body: true})
			g.allow(err)

			view, err := projection.Load(bg, log, "s", projection.History)
			g.allow(err)
			if view.Explain.Parts[0].From.Seq != 2 {
				t.Fatalf("no snapshot was used: %+v", view.Explain)
			}
			entries, err := view.State.Messages()
			g.allow(err)
			if got := entries[0].Message.Parts[0].Arguments; string(got) != arguments {
				t.Errorf("arguments are %s after a snapshot, not %s", got, arguments)
			}
		})
	}
}

// A snapshot with the highest index there is, which only a mistake or a lie can
// give it, keeps no others from being taken.
func TestSnapshotsBehindTheHighestIndex(t *testing.T) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			g := &garden{t: t, log: log}
			g.append("s", g.made(eventlog.NewUserMessage("hello")))
			g.append("s", g.made(eventlog.NewProjectionSnapshotted(eventlog.Snapshot{Projection: "made-up", Index: math.MaxInt})))
			v, err := projection.Resume(bg, log, "s", projection.Session)
			g.allow(err)
			s, taken, err := v.Snapshot(bg, projection.Request{Body: true})
			if !taken || err != nil || s.Index != math.MaxInt {
				t.Errorf("snapshot %d taken: %v, %v", s.Index, taken, err)
			}
		})
	}
}
