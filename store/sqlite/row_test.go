package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/verify"
)

// A session row that does not match the session's first or last event is damage, for
// readers and for appends. Without the check an append would conflict for ever.
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
				return // an append does not read first
			}
			_, err = log.Append(t.Context(), "a", eventlog.Any(), event.Event{ID: event.NewID(), Type: "test:note", Data: []byte(`{}`)})
			want(t, eventlog.ErrCorrupt, err)
		})
	}
}

// A line that no append can have written is damage with its place. Readers do not fetch
// it, and a salvage keeps the other events.
func TestLongRow(t *testing.T) {
	size := testsize.Pick(2, 2, 8) * pages.LongestLine
	path := tempPath(t)
	s := New(path)
	add(t, s, "a", event.Head{}, 3, "x")
	must(t, s.Close())
	makeDatabase(t, path, fmt.Sprintf("UPDATE events SET line = randomblob(%d) WHERE seq = 2", size))
	s = open(t, path)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	events, err := collect(s.Read(t.Context(), "a", eventlog.Span{}))
	var damage *eventlog.CorruptError
	if len(events) != 1 || !errors.As(err, &damage) || damage.Seq != 2 || !errors.Is(err, pages.ErrLongLine) {
		t.Errorf("read %d events, then %v", len(events), err)
	}
	readable := 0
	for f, err := range s.Fragments(t.Context(), "a") {
		must(t, err)
		if f.Err == nil {
			readable++
		} else if f.Seq != 2 || !errors.Is(f.Err, pages.ErrLongLine) {
			t.Errorf("seq %d: %v", f.Seq, f.Err)
		}
	}
	if readable != 2 {
		t.Errorf("%d readable events, want 2", readable)
	}
	for _, err := range s.Check(t.Context()) {
		must(t, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(size)/4 {
		t.Errorf("the readers allocated %d bytes", got)
	}
}
