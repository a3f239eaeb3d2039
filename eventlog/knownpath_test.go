package eventlog

import (
	"fmt"
	"testing"

	"github.com/convlog/convlog/event"
)

// What a log remembers of paths is bounded, in sessions and in stretches, and the newest
// path is remembered.
func TestKnownPathsAreBounded(t *testing.T) {
	var known knownPaths
	for i, stretches := range []int{1, maxStretches, maxStretches / 2, maxStretches / 2, 0, maxStretches - 1, 3, 3} {
		session := fmt.Sprint("s", i%7)
		known.put(session, knownPath{event.Head{Seq: minKnown}, make(event.Path, stretches)})
		if got := len(known.get(session).path); got != stretches {
			t.Errorf("path %d has %d stretches, want %d", i, got, stretches)
		}
		checkKnown(t, &known)
	}
	for i := range 3 * maxKnown {
		known.put(fmt.Sprint("many", i), knownPath{event.Head{Seq: minKnown}, make(event.Path, 1)})
		checkKnown(t, &known)
	}
	before := len(known.bySession)
	known.put("long", knownPath{event.Head{Seq: minKnown}, make(event.Path, maxStretches+1)})
	known.put("short", knownPath{event.Head{Seq: minKnown - 1}, make(event.Path, 1)})
	if len(known.bySession) != before || before != maxKnown {
		t.Errorf("%d sessions are known, and %d before a path that is too long and one that ends early", len(known.bySession), before)
	}
}

func checkKnown(t *testing.T, known *knownPaths) {
	t.Helper()
	total := 0
	for _, p := range known.bySession {
		total += len(p.path)
	}
	if total != known.stretches || total > maxStretches || len(known.bySession) > maxKnown {
		t.Errorf("%d sessions with %d stretches, counted as %d", len(known.bySession), total, known.stretches)
	}
}
