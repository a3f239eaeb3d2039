package sqlite

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// The row of a session that does not say how its events begin and end is
// damage: to readers, and to an append, which would find another head than the
// one it is refused with, for ever.
func TestMismatchedSessionRow(t *testing.T) {
	for name, change := range map[string]string{
		"another hash":    "hash = randomblob(32)",
		"a short hash":    "hash = randomblob(31)",
		"an earlier head": "head = 2",
		"a later head":    "head = 4",
		"no events":       "head = 0",
		"a later first":   "first = 2",
		"first 0":         "first = 0",
		"a text":          "head = 'x'",
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := New(path)
			add(t, s, "a", event.Head{}, 3, "x")
			must(t, s.Close())
			makeDatabase(t, path, "UPDATE sessions SET "+change)
			log := eventlog.Open(open(t, path))
			_, err := collect(log.Read(t.Context(), "a", eventlog.All()))
			want(t, eventlog.ErrCorrupt, err)
			report, err := verify.Session(t.Context(), log, "a")
			must(t, err)
			if len(report.Defects) == 0 {
				t.Error("verify is silent")
			}
			if change == "first = 2" {
				return // an append does not look there
			}
			_, err = log.Append(t.Context(), "a", eventlog.Any(), event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)})
			want(t, eventlog.ErrCorrupt, err)
		})
	}
}
